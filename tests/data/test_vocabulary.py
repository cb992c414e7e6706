"""Vocabulary files are read strictly; the same words give the same file."""

import gzip
import os
import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data import tokenization, vocabulary
from errors import UserError

ROOT = Path(__file__).parents[2]
SPECIAL = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"


def read(tmp_path, content):
    path = tmp_path / "vocab.txt"
    if isinstance(content, str):
        content = content.encode()
    path.write_bytes(content)
    return vocabulary.read_vocabulary(str(path))


def test_ids_are_line_numbers(tmp_path):
    assert read(tmp_path, SPECIAL + "the\n##s\n") == {
        "[PAD]": 0,
        "[UNK]": 1,
        "[CLS]": 2,
        "[SEP]": 3,
        "[MASK]": 4,
        "the": 5,
        "##s": 6,
    }


@pytest.mark.parametrize(
    "tail, tokens",
    [
        ("the\n##s", ["the", "##s"]),  # no newline at the end
        ("the\r\n##s\r\n", ["the", "##s"]),
        (" the \n##s\n", ["the", "##s"]),
        ("the\n\u2028\n\xa0\n\u3000\n", ["the", "\u2028", "\xa0", "\u3000"]),
        ("a\u2028b\n\x85\n", ["a\u2028b", "\x85"]),
        ("推\n##\U0001f600\n", ["推", "##\U0001f600"]),
    ],
)
def test_these_files_are_read(tmp_path, tail, tokens):
    vocab = read(tmp_path, SPECIAL + tail)
    assert list(vocab)[5:] == tokens
    assert list(vocab.values()) == list(range(5 + len(tokens)))


def test_crlf_everywhere_gives_the_same_tokens(tmp_path):
    text = SPECIAL + "the\n##s\n"
    crlf = text.replace("\n", "\r\n")
    assert read(tmp_path, crlf) == read(tmp_path, text)


@pytest.mark.parametrize(
    "content, message",
    [
        ("\ufeff" + SPECIAL, ":1: starts with a UTF-8 byte order mark; "),
        (SPECIAL.encode("utf-16"), ": this is a UTF-16 text; expected a voc"),
        (b"\xfe\xff" + SPECIAL.encode("utf-16-be"), ": this is a UTF-16 text"),
        (gzip.compress(SPECIAL.encode()), ": this is a gzip file; expected"),
        (b"PK\x03\x04\x14\x00", ": this is a zip archive"),
        (pickle.dumps({"a": 1}), ": this is a pickle; expected a vocab"),
        (b"\x89HDF\r\n\x1a\n", ": this is an HDF5 file; expected a vocab"),
        (SPECIAL.encode() + b"a\nb\xc0c\n", ":7: invalid UTF-8 byte 0xc0; "),
        (SPECIAL + "a\n\nb\n", ":7: empty line; expected one token a line"),
        (SPECIAL + "a\n \nb\n", ":7: empty line"),
        (SPECIAL + "a\n\n\n", ":7: empty line"),
        (SPECIAL + "a\nb\na\n", ":8: token 'a' stands on line 6 too; "),
        (SPECIAL + "a\na\r\n", ":7: token 'a' stands on line 6 too; "),
        (SPECIAL + "a\t-3.5\n", r":6: tab in token 'a\t-3.5'; expected one"),
        ("[PAD]\n[CLS]\na\n", ": no [UNK] [SEP] [MASK] among 3 tokens; "),
        ("", ": no [PAD] [UNK] [CLS] [SEP] [MASK] among 0 tokens; "),
    ],
)
def test_these_files_are_refused(tmp_path, content, message):
    with pytest.raises(UserError) as error:
        read(tmp_path, content)
    assert str(error.value).startswith(f"{tmp_path}/vocab.txt{message}")


@pytest.mark.parametrize("missing", range(5))
def test_each_special_token_must_be_there(tmp_path, missing):
    token = vocabulary.SPECIAL_TOKENS[missing]
    with pytest.raises(UserError) as error:
        read(tmp_path, SPECIAL.replace(token, "x"))
    assert f": no {token} among 5 tokens; " in str(error.value)


@pytest.mark.parametrize(
    "function", [vocabulary.read_vocabulary, vocabulary.vocabulary_hash]
)
def test_missing_file_and_folder_are_user_errors(tmp_path, function):
    with pytest.raises(UserError, match="none.txt: No such file"):
        function(str(tmp_path / "none.txt"))
    with pytest.raises(UserError, match="is a folder; expected a vocab"):
        function(str(tmp_path))


def test_hash_is_the_sha256_of_the_bytes(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"abc")
    assert vocabulary.vocabulary_hash(str(path)) == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_written_vocabulary_is_read_back(tmp_path):
    path = str(tmp_path / "vocab.txt")
    tokens = [*vocabulary.SPECIAL_TOKENS, "the", "##\u2028", "推"]
    vocabulary.write_vocabulary(path, tokens)
    assert list(vocabulary.read_vocabulary(path)) == tokens
    vocabulary.write_vocabulary(path, tokens[:6])
    assert list(vocabulary.read_vocabulary(path)) == tokens[:6]
    assert os.listdir(tmp_path) == ["vocab.txt"]


def test_special_tokens_stand_where_the_released_files_have_them():
    tokens = vocabulary.learn_vocabulary(Counter({"ab": 3, "b": 1}), 109)
    assert tokens[0] == "[PAD]"
    assert tokens[1:100] == [f"[unused{i}]" for i in range(99)]
    assert tokens[100:104] == ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert tokens[104:] == ["a", "b", "##b", "ab"]


def learn(words, size=97, **options):
    """The tokens after the special ones."""
    options = {"num_unused": 0, **options}
    return vocabulary.learn_vocabulary(Counter(words), size, **options)[5:]


@pytest.mark.parametrize(
    "options, tokens",
    [
        ({}, "a b c ##a ##b ##c ##bc abc"),
        ({"min_frequency": 7}, "a b c ##a ##b ##c ##bc abc"),
        ({"min_frequency": 8}, "a b c ##a ##b ##c ##bc"),
        ({"min_frequency": 9}, "a b c ##a ##b ##c"),
        ({"min_frequency": 1}, "a b c ##a ##b ##c ##bc abc ca cbc"),
        ({"size": 12}, "a b c ##a ##b ##c ##bc"),
        ({"size": 11}, "a b c ##a ##b ##c"),
        ({"limit_alphabet": 2}, "a c ##a ##c"),
        ({"limit_alphabet": 2, "min_frequency": 1}, "a c ##a ##c ca"),
        ({"max_chars_per_word": 2}, "a b c ##a"),
    ],
)
def test_frequent_neighbours_are_merged(options, tokens):
    words = {"abc": 7, "cbc": 1, "ca": 1, "a": 1, "b": 1}
    assert learn(words, **options) == tokens.split()


def test_the_smallest_size_holds_the_characters_alone():
    assert learn({"ab": 7}, size=8) == ["a", "b", "##b"]


def test_rare_characters_are_left_out_in_code_point_order():
    # a and c are equally rare: the smaller code point is kept.
    words = {"b": 5, "c": 3, "a": 3}
    assert learn(words, limit_alphabet=2) == ["a", "b"]


@pytest.mark.parametrize("size", [5, 10])
def test_too_small_a_size_names_what_is_needed(size):
    with pytest.raises(UserError) as error:
        learn({"abc": 7, "ba": 1, "c": 1}, size=size)
    assert str(error.value) == (
        f"--vocab_size={size} is too small; expected at least 11: "
        "5 special and unused tokens and 6 characters"
    )


@pytest.mark.parametrize("words", [{}, {"a" * 201: 7}])
def test_a_corpus_without_words_is_refused(words):
    with pytest.raises(UserError, match="the corpus has no word"):
        learn(words)


WORDS = st.dictionaries(
    st.text("abcdeßé推", min_size=1, max_size=7),
    st.integers(1, 29),
    min_size=1,
    max_size=23,
)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(WORDS, st.integers(21, 61), st.integers(1, 8))
def test_kept_words_have_pieces_and_the_size_holds(words, size, alphabet):
    tokens = vocabulary.learn_vocabulary(
        Counter(words), size, num_unused=0, limit_alphabet=alphabet
    )
    assert len(tokens) == len(set(tokens)) <= size
    vocab = {token: i for i, token in enumerate(tokens)}
    tokenizer = tokenization.WordpieceTokenizer(vocab)
    kept = {token[-1] for token in tokens[5:]}
    assert len(kept) <= alphabet
    for word in words:
        known = "[UNK]" not in tokenizer.tokenize(word)
        assert known == (set(word) <= kept)


LEARN = """
import sys
from collections import Counter
from data import vocabulary
letters = "abcdefghijk"
words = {a + b + c for a in letters for b in letters for c in letters}
tokens = vocabulary.learn_vocabulary(
    Counter({word: 1 + len(word.strip("a")) for word in words}), 499
)
sys.stdout.write("\\n".join(tokens))
"""


def test_two_processes_learn_the_same():
    # 1331 words of nearly equal counts: almost every merge is a tie.
    outputs = [
        subprocess.run(
            [sys.executable, "-c", LEARN],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split("\n")
        for seed in ("1", "2")
    ]
    assert len(outputs[0]) == 499
    assert outputs[0] == outputs[1]
