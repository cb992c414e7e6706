"""Tokenization: the results of the original release, on every string."""

import itertools

import pytest
from tokenizers import normalizers, pre_tokenizers

from bert.common.errors import UserError
from bert.data.text import normalization, tokenization, unicode_tables
from tests.helpers.original_tokenization import CJK, MODES, known
from tests.helpers.original_tokenization import words as plain_tokens

WORDPIECES = ["un", "##aff", "##able", "##a", "a", "##b", "b", ",", "ß", "the"]
LINES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDPIECES]


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return str(path)


def words(text, lower=True):
    return tokenization.BasicTokenizer(do_lower_case=lower).tokenize(text)


@pytest.mark.parametrize(
    "raw, expected",
    [
        (b"caf\xc3\xa9", "caf\xe9"),
        (b"a\xffb", "ab"),
        (b"a\xc3", "a"),
        (b"\xed\xa0\x80a", "a"),
        ("a\ufffd", "a\ufffd"),
    ],
)
def test_invalid_utf8_bytes_are_dropped(raw, expected):
    assert tokenization.convert_to_unicode(raw) == expected
    assert tokenization.printable_text(raw) == expected
    assert words(raw, lower=False) == words(expected, lower=False)
    tokenizer = tokenization.WordpieceTokenizer({expected: 0})
    assert tokenizer.tokenize(raw) == [expected]


@pytest.mark.parametrize("wrong", [None, 7, ["a"]])
def test_other_types_are_a_value_error(wrong):
    for function in (
        tokenization.convert_to_unicode,
        tokenization.printable_text,
        tokenization.BasicTokenizer().tokenize,
    ):
        with pytest.raises(ValueError):
            function(wrong)


def test_the_unknown_token_and_the_longest_word_may_be_given():
    tokenizer = tokenization.WordpieceTokenizer(
        {"a": 0, "##a": 1}, unk_token="?", max_input_chars_per_word=3
    )
    assert tokenizer.tokenize("aaa\u2003aaaa\n") == ["a", "##a", "##a", "?"]


def test_full_tokenizer_splits_and_numbers(vocab_file):
    tokenizer = tokenization.FullTokenizer(vocab_file)
    tokens = tokenizer.tokenize("UNaffable, ÄB \u00a0 zzz")
    assert tokens == ["un", "##aff", "##able", ",", "a", "##b", "[UNK]"]
    ids = tokenizer.convert_tokens_to_ids(tokens)
    assert ids == [5, 6, 7, 12, 9, 10, 1]
    assert tokenizer.convert_ids_to_tokens(ids) == tokens
    with pytest.raises(KeyError):
        tokenizer.convert_tokens_to_ids(["a", "zzz"])
    with pytest.raises(KeyError):
        tokenizer.convert_ids_to_tokens([9, 97])
    cased = tokenization.FullTokenizer(vocab_file, do_lower_case=False)
    assert cased.tokenize("the THE ab") == ["the", "[UNK]", "a", "##b"]


@pytest.mark.parametrize(
    "name, lower",
    [
        ("uncased_L-24_H-1024_A-16", True),
        ("uncased_L-12_H-768_A-12", True),
        ("multilingual_L-12_H-768_A-12", True),
        ("chinese_L-12_H-768_A-12", True),
        ("cased_L-12_H-768_A-12", False),
        ("cased_L-24_H-1024_A-16", False),
        ("multi_cased_L-12_H-768_A-12", False),
    ],
)
def test_casing_must_fit_a_released_checkpoint(name, lower):
    path = f"/models/{name}/bert_model.ckpt"
    tokenization.validate_case_matches_checkpoint(lower, path)
    with pytest.raises(UserError, match=f"--do_lower_case={lower}"):
        tokenization.validate_case_matches_checkpoint(not lower, path)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize(
    "path",
    [
        None,
        "",
        "/models/my_cased/bert_model.ckpt",
        "/models/cased_L-12_H-768_A-12/model.ckpt-7",
        "bert_model.ckpt",
    ],
)
def test_casing_of_other_checkpoints_is_free(path, lower):
    assert tokenization.validate_case_matches_checkpoint(lower, path) is None


@pytest.mark.parametrize("lower, strip", MODES)
def test_code_points_of_planes_0_to_3(lower, strip):
    """All of the first plane, and every fifth of the others."""
    tokenizer = tokenization.BasicTokenizer(lower, strip)
    for start in range(0, 0x40000, 0x400):
        step = 5 if start >= 0x10000 else 1
        block = map(chr, range(start, start + 0x400, step))
        text = known(" ".join(f"a{c}B" for c in block))
        assert tokenizer.tokenize(text) == plain_tokens(text, lower, strip)


def test_words_are_split_by_the_tables_of_the_graph(monkeypatch):
    """Not by Python's own Unicode data, which another version changes."""
    table = unicode_tables.entries(False, False).copy()
    table[ord("q")], table[ord("!")] = unicode_tables.ALONE, 0
    monkeypatch.setattr(unicode_tables, "entries", lambda *_: table)
    made = normalization._tables.__wrapped__  # not those of another test
    monkeypatch.setattr(normalization, "_tables", made)
    assert words("aqb!", lower=False) == ["a", "q", "b!"]
    assert tokenization.is_punctuation("q")
    assert not tokenization.is_punctuation("!")


def test_ideographs_are_no_punctuation():
    for code in itertools.chain.from_iterable(CJK):
        assert not tokenization.is_punctuation(chr(code)), hex(code)


# Assigned in Unicode 15: two accents, a sign, a control character, a letter.
NEWER = "a\u0ecea a\U00010efda a\U00011f43a a\U00013440a a\U0001e08fa"


@pytest.mark.parametrize("lower, strip", MODES)
def test_characters_of_a_newer_unicode_are_letters(lower, strip):
    tokens = tokenization.BasicTokenizer(lower, strip).tokenize(NEWER)
    assert tokens == NEWER.split()


# The library differs: it drops private-use and unassigned characters,
# lower-cases each capital sigma by itself, and has a newer Unicode version.
SCRIPTS = [(0x20, 0x378), (0x384, 0x38A), (0x38E, 0x3A2), (0x3AA, 0x530)]
SCRIPTS += [(0x5D0, 0x5EB), (0x900, 0x964), (0x1E00, 0x1F00), (0x2010, 0x2028)]
SCRIPTS += [(0x3041, 0x3097), (0x30A1, 0x30FB), (0x4E00, 0x4E40)]
SCRIPTS += [(0xAC00, 0xAC40), (0xF900, 0xF940)]


@pytest.mark.parametrize("strip", [None, True, False])
@pytest.mark.parametrize("lower", [True, False])
def test_accents_are_those_of_hugging_face(lower, strip):
    peer = normalizers.BertNormalizer(lowercase=lower, strip_accents=strip)
    split = pre_tokenizers.BertPreTokenizer()
    ours = tokenization.BasicTokenizer(lower, strip)
    for first, stop in SCRIPTS:
        for code in range(first, stop):
            text = f"A{chr(code)}b {chr(code)} {chr(code)}C"
            theirs = split.pre_tokenize_str(peer.normalize_str(text))
            assert ours.tokenize(text) == [x for x, _ in theirs], hex(code)


def test_a_full_memo_is_emptied(vocab_file, monkeypatch):
    monkeypatch.setattr(tokenization, "MEMO_BYTES", 1000)
    tokenizer = tokenization.FullTokenizer(vocab_file)
    for word in ["a", "b", "un", "the", "b", "a", "un"]:
        assert tokenizer.tokenize(f"{word} ab") == [word, "a", "##b"]
        assert 0 < len(tokenizer._memo) <= 3
