"""Reading, comparing and writing vocabulary files."""

import hashlib
import itertools
import os
import re

from common import storage, text_lines
from common.errors import UserError
from common.storage import write_whole

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)
UNUSED = r"\[unused\d+\]"  # slots that new words may take


def read_vocabulary(path: str) -> dict[str, int]:
    """Reads a vocabulary file: UTF-8, one token per line, in order of ids.

    Lines end at a newline only (a token may be any other character, such as
    U+2028), and ASCII white space around a token is dropped.

    Args:
        path: the file.

    Returns:
        token -> id, in the file's order.

    Raises:
        UserError: the file is missing or another kind of file; has a byte
            order mark, an invalid byte, an empty line or a duplicate token;
            or lacks one of the five special tokens.
    """
    vocabulary: dict[str, int] = {}
    lines = read_lines(path)
    for number, token in enumerate(lines, start=1):
        expected = "one token per line"
        if not token:
            found, fix = "empty line", "remove the line"
        elif "\t" in token:
            found = f"tab in token {token!r}"
            fix = "a SentencePiece vocabulary cannot be used here"
        elif token in vocabulary:
            first = vocabulary[token] + 1
            found = f"duplicate token {token!r}, first on line {first}"
            expected, fix = "unique tokens", "remove one of the two"
        else:
            vocabulary[token] = number - 1
            continue
        raise UserError(
            found, path=path, line=number, expected=expected, fix=fix
        )
    missing = [token for token in SPECIAL_TOKENS if token not in vocabulary]
    if missing:
        raise UserError(
            f"no {' '.join(missing)} among {len(vocabulary)} tokens",
            path=path,
            expected=f"the special tokens {' '.join(SPECIAL_TOKENS)}",
            fix="add them, each on its own line",
        )
    return vocabulary


def read_lines(path: str) -> list[str]:
    """Reads the lines of a text file, stripped of ASCII white space.

    Args:
        path: the file.

    Returns:
        the lines.

    Raises:
        UserError: the file is missing or another kind of file, or has a byte
            order mark or an invalid byte.
    """
    lines = text_lines.decode_block(_read_bytes(path), path)
    return [line.strip(" \t\r\n") for line in lines]


def vocabulary_hash(path: str) -> str:
    """Returns the sha256 of the file's bytes as hexadecimal digits."""
    return hashlib.sha256(_read_bytes(path)).hexdigest()


def check_same(
    path: str, known: str, fix: str, may_extend: bool = False
) -> None:
    """Checks that a vocabulary has the same ids as a known one.

    Args:
        path: the vocabulary.
        known: path of the known vocabulary.
        fix: advice for the message.
        may_extend: allow words in the known vocabulary's `[unusedN]` slots
            and after its last token.

    Raises:
        UserError: a token differs; the message names the first.
    """
    files = read_lines(path), read_lines(known)
    pairs = itertools.zip_longest(*files, fillvalue="")
    for number, (token, expected) in enumerate(pairs, start=1):
        is_free = not expected or re.fullmatch(UNUSED, expected)
        if token != expected and not (may_extend and token and is_free):
            wanted = repr(expected) if expected else "the end"
            raise UserError(
                f"token {token!r}" if token else "the end",
                path=path,
                line=number,
                expected=f"{wanted}, as in {known}",
                fix=fix,
            )


def write_vocabulary(path: str, tokens: list[str]) -> None:
    """Writes one token per line, whoever else writes the same file.

    Raises:
        UserError: the file cannot be written.
    """
    content = "".join(f"{token}\n" for token in tokens)
    write_whole(path, content, f"{os.getpid()}.partial")


def _read_bytes(path: str) -> bytes:
    try:
        with storage.open_file(path, "rb") as file:
            raw = file.read()
    except OSError as error:
        raise text_lines.unreadable(path, error, "a vocabulary file") from None
    if raw.startswith(b"\xef\xbb\xbf"):
        raise UserError(
            "starts with a UTF-8 byte order mark",
            path=path,
            line=1,
            fix="save it without one",
        )
    return raw


def is_padded(vocab_size: int, num_tokens: int) -> bool:
    """Returns whether a config has a few more tokens than a vocabulary.

    Embeddings may be padded to a multiple of 8 or 64 for speed.
    """
    return vocab_size % 8 == 0 and 0 < vocab_size - num_tokens < 128
