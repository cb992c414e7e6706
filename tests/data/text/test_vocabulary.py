"""Vocabulary files are read strictly; the same words give the same file."""

import pickle

import pytest

from bert.common.errors import UserError
from bert.data.text import vocabulary
from bert.data.text.tokenizer import Tokenizer

SPECIAL = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"


def read(tmp_path, content):
    path = tmp_path / "vocab.txt"
    if isinstance(content, str):
        content = content.encode()
    path.write_bytes(content)
    return vocabulary.read_vocabulary(str(path))


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


@pytest.mark.parametrize(
    "content, message",
    [
        ("\ufeff" + SPECIAL, ":1: starts with a UTF-8 byte order mark; "),
        (pickle.dumps({"a": 1}), ":1: is a pickle; expected UTF-8; pa"),
        (SPECIAL + "a\n\nb\n", ":7: empty line; expected one token per line"),
        (SPECIAL + "a\n\n\n", ":7: empty line"),
        (SPECIAL + "a\nb\na\n", ":8: duplicate token 'a', first on line 6; "),
        (SPECIAL + "a\na\r\n", ":7: duplicate token 'a', first on line 6; "),
        (SPECIAL + "a\t-3.5\n", r":6: tab in token 'a\t-3.5'; expected one"),
        ("[PAD]\n[CLS]\na\n", ": no [UNK] [SEP] [MASK] among 3 tokens; "),
        ("", ": no [PAD] [UNK] [CLS] [SEP] [MASK] among 0 tokens; "),
        *(
            (SPECIAL.replace(token, "x"), f": no {token} among 5 tokens; ")
            for token in vocabulary.SPECIAL_TOKENS
        ),
    ],
)
def test_these_files_are_rejected(tmp_path, content, message):
    with pytest.raises(UserError) as error:
        read(tmp_path, content)
    assert str(error.value).startswith(f"{tmp_path}/vocab.txt{message}")


@pytest.mark.parametrize(
    ("given", "same", "extends"),
    [
        ("a\n[unused7]\nb\n[unused9]\n", True, True),
        ("a\r\n[unused7]\r\nb\r\n[unused9]", True, True),
        ("a\nnew\nb\n[unused9]\n", False, True),
        ("a\n[unused7]\nb\n[unused9]\nnew\n", False, True),
        ("a\n[unused8]\nb\n[unused9]\n", False, True),
        ("a\n[unused7]\nc\n[unused9]\n", False, False),
        ("b\n[unused7]\na\n[unused9]\n", False, False),
        ("a\n[unused7]\nb\n", False, False),
        ("a\n[unused7]\n[unused8]\n", False, False),
    ],
)
def test_ids_are_those_of_a_known_vocabulary(tmp_path, given, same, extends):
    path = tmp_path / "given.txt"
    path.write_bytes((SPECIAL + given).encode())
    tokens = [*vocabulary.SPECIAL_TOKENS, "a", "[unused7]", "b", "[unused9]"]
    tokenizer, other = Tokenizer(str(path)), Tokenizer("old", tokens=tokens)
    for may_extend, fits in ((False, same), (True, extends)):
        if fits:
            tokenizer.same_as(other, "fix it", may_extend)
            continue
        with pytest.raises(UserError, match=", as in old; fix it"):
            tokenizer.same_as(other, "fix it", may_extend)
