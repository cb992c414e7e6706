"""Checks of vocabularies, alone and together with what uses them."""

import pytest

from bert.common.errors import UserError
from bert.data.text import vocabulary_checks
from bert.data.text.tokenizer import Tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]"]
LOWER = [*SPECIAL, "the", "##s", "."]
CASED = [*LOWER, "The"]
CASELESS = [*SPECIAL, "的", "."]


def write(path, tokens, end="\n", start=""):
    text = start + "".join(token + end for token in tokens)
    path.write_bytes(text.encode())
    return str(path)


def messages(findings, level):
    return [x.message for x in findings if x.level == level]


def test_a_good_vocabulary_is_fine(tmp_path):
    for tokens, casing in (
        (LOWER, "uncased"),
        (CASED, "cased"),
        (CASELESS, "without letters of either case"),
    ):
        path = write(tmp_path / "vocab.txt", tokens)
        found = vocabulary_checks.check_file(Tokenizer(path))
        assert [x.level for x in found] == ["fine"]
        assert found[0].message == f"{path}: {len(tokens)} tokens, {casing}"


def test_readable_files_that_are_suspicious(tmp_path):
    path = write(tmp_path / "vocab.txt", LOWER, end="\r\n")
    found = vocabulary_checks.check_file(Tokenizer(path))
    assert messages(found, "suspicious")[0].startswith(
        f"{path}: lines end in CR LF; expected LF"
    )
    write(tmp_path / "vocab.txt", ["the", *SPECIAL])
    found = vocabulary_checks.check_file(Tokenizer(path))
    assert messages(found, "suspicious") == [
        f"{path}: [PAD] is token 1; expected 0, the id of padding; "
        "move it to the first line, and make the records again"
    ]


def test_casing_and_vocabulary_go_together():
    for tokens, lower, message in (
        (LOWER, True, None),
        (CASED, False, None),
        (CASELESS, True, None),
        (CASELESS, False, None),
        (CASED, None, None),
        (CASED, True, "v: has tokens with capital letters, "),
        (LOWER, False, "v: has no token with a capital letter, "),
    ):
        tokenizer = Tokenizer("v", lower, tokens=tokens)
        found = vocabulary_checks.check_use(tokenizer)
        lines = messages(found, "suspicious")
        assert len(found) == len(lines) == (message is not None)
        assert all(line.startswith(message) for line in lines)


def test_sizes_of_config_and_vocabulary():
    for size, level in (
        (9, None),
        (16, "fine"),  # filled up to a multiple of 8
        (8, "wrong"),
        (17, "suspicious"),
        (512, "suspicious"),
    ):
        tokenizer = Tokenizer("v", tokens=LOWER)
        found = vocabulary_checks.check_use(tokenizer, size, "c")
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
    same = {"vocab_sha256": digest, "vocab_file": path}
    other = {"vocab_sha256": "0" * 64, "vocab_file": "records/vocab-0.txt"}
    assert vocabulary_checks.check_hash(tokenizer, [same]) == []
    (found,) = vocabulary_checks.check_hash(tokenizer, [same, other])
    assert found.level == "wrong"
    assert found.message == (
        f"{path}: sha256 is {digest[:12]}…; expected 000000000000…, the "
        "vocabulary of the records; pass --vocab_file=records/vocab-0.txt"
    )


STRIPPED = (
    "warning: v: in a sample of {} texts, {} of the characters are vowel "
    "signs, umlauts or accents that are stripped; expected at most 0.3%; pass "
    "--nostrip_accents, from create_vocab.py on; or use a cased model"
)


@pytest.mark.parametrize(
    ("casing", "texts", "line"),
    [
        ((True, None), ["हिन्दी में"] * 3, STRIPPED.format(3, "30.0%")),
        ((True, None), ["ที่นี่ยังมี"], STRIPPED.format(1, "54.5%")),
        ((True, None), ["Über", "schöne T"], STRIPPED.format(2, "16.7%")),
        ((False, True), ["U\u0308ber schone"], STRIPPED.format(1, "8.3%")),
        ((True, None), ["café " + 395 * "a"], None),
        ((True, None), ["的 the 한국어"], None),
        ((True, None), [*["the"] * 1000, "हिन्दी"], None),
        ((True, None), ["the" * 1000 + "हिन्दी"], None),
        ((True, False), ["हिन्दी में"], None),
        ((False, None), ["हिन्दी में"], None),
    ],
)
def test_characters_that_are_stripped_are_warned_of(
    monkeypatch, casing, texts, line
):
    tokenizer = Tokenizer("v", *casing, tokens=LOWER)
    logged = []
    monkeypatch.setattr(vocabulary_checks, "say", logged.append)
    vocabulary_checks.warn(tokenizer, texts=iter(texts))
    found = [text for text in logged if "accents" in text]
    assert found == ([line] if line else [])


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("a" * 256, None),
        ("##" + "a" * 256, None),
        ("a" * 257, "has 257 bytes; expected at most 256"),
        ("##" + "\u00e9" * 129, "has 258 bytes; expected at most 256"),
        ("a\0", "contains a null character"),
        ("##\0a", "contains a null character"),
        ("##", None),
        ("####", None),
        ("\u200b", None),
        ("a b", None),
    ],
)
def test_tokens_that_a_graph_does_not_support_are_named(
    tmp_path, token, message
):
    """The rule is the one of TensorFlow Text's kernel."""
    path = write(tmp_path / "vocab.txt", [*LOWER, token, "#"])
    tokenizer = Tokenizer(path)
    if message is None:
        vocabulary_checks.check_exportable(tokenizer)
        found = tokenizer.graph.tokenize([f"the {token[:7]} ## thes"])
        ids = [tokenizer.vocab[x] for x in ("the", "##s")]
        assert found.to_list()[0][-1] == ids
        return
    with pytest.raises(UserError) as caught:
        vocabulary_checks.check_exportable(tokenizer)
    assert str(caught.value).startswith(f"{path}:{len(LOWER) + 1}: token ")
    assert message in str(caught.value)
    with pytest.raises(RuntimeError):
        assert tokenizer.graph
