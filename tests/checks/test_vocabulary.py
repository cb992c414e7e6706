"""Findings about vocabularies, alone and together with what uses them."""

from bert.checks import vocabulary
from bert.data.text.tokenizer import Tokenizer
from tests.helpers import pretraining_files, text

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]"]
LOWER = [*SPECIAL, "the", "##s", "."]


def write(path, tokens):
    text.write_vocabulary(path, tokens)
    return str(path)


def messages(findings, level):
    return [x.message for x in findings if x.level == level]


def test_a_good_vocabulary_is_fine(tmp_path):
    for tokens, casing in (
        (LOWER, "uncased"),
        ([*LOWER, "The"], "cased"),
        ([*SPECIAL, "的"], "without letters of either case"),
    ):
        path = write(tmp_path / "vocab.txt", tokens)
        found = vocabulary.check_file(Tokenizer(path))
        assert [x.level for x in found] == ["fine"]
        assert found[0].message == f"{path}: {len(tokens)} tokens, {casing}"


def test_padding_that_is_not_0(tmp_path):
    path = write(tmp_path / "vocab.txt", ["the", *SPECIAL])
    found = vocabulary.check_file(Tokenizer(path))
    assert messages(found, "suspicious") == [
        f"{path}: [PAD] is token 1; expected 0, the id of padding; "
        "move it to the first line, and make the records again"
    ]


def test_sizes_of_config_and_vocabulary():
    for size, level in (
        (9, None),
        (16, None),  # filled up to a multiple of 8
        (8, "wrong"),
        (17, "suspicious"),
        (512, "suspicious"),
    ):
        tokenizer = Tokenizer("v", tokens=LOWER)
        found = vocabulary.check_use(tokenizer, size, "c")
        assert [x.level for x in found] == ([level] if level else [])
        if level:
            assert found[0].message.startswith(
                f"c: vocab_size is {size}; expected 9, the number of tokens "
                "of v; "
            )


def test_the_vocabulary_of_the_records_is_another(tmp_path):
    path = write(tmp_path / "vocab.txt", LOWER)
    tokenizer = Tokenizer(path)
    digest = tokenizer.sha256
    same = pretraining_files.manifest(vocab_sha256=digest, vocab_file=path)
    other = pretraining_files.manifest(
        vocab_sha256="0" * 64, vocab_file="records/vocab-0.txt"
    )
    assert vocabulary.check_hash(tokenizer, [same]) == []
    (found,) = vocabulary.check_hash(tokenizer, [same, other])
    assert found.level == "wrong"
    assert found.message == (
        f"{path}: sha256 is {digest[:12]}…; expected 000000000000…, the "
        "vocabulary of the records; pass --vocab_file=records/vocab-0.txt"
    )
