"""Reads and writes vocabulary files, and adds words to them."""

import io
import re

from bert.common import storage, text_lines
from bert.common.atomic import write_whole
from bert.common.errors import UserError
from bert.common.formats import downloads

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)
UNUSED = r"\[unused\d+\]"  # slots for new words


def read_vocabulary(path: str) -> dict[str, int]:
    """Reads a vocabulary file: UTF-8, one token per line, in order of ids.

    Lines end at a newline only (a token may be any other character, such as
    U+2028), and ASCII white space around a token is dropped.

    Args:
        path: str. The file.

    Returns:
        dict. Token -> id, in the file's order.

    Raises:
        UserError: The file is missing, of another kind or invalid. Errors are
            a byte order mark, invalid UTF-8, an empty line, a duplicate token
            and a missing special token.
    """
    return parse(read_bytes(path), path)


def parse(content: bytes, path: str) -> dict[str, int]:
    """Parses the content of a vocabulary file, see `read_vocabulary`.

    Args:
        content: bytes. Content of the file.
        path: str. The file, for messages.
    """
    vocabulary: dict[str, int] = {}
    text_lines.check_start(content, path)

    # The number of a line is an id, so lines cannot be skipped.
    for number, raw in enumerate(io.BytesIO(content), start=1):
        token = text_lines.decode(raw, path, number).strip(" \t\r\n")
        expected = "one token per line"
        if not token:
            mistake, fix = "empty line", "remove the line"
        elif "\t" in token:
            mistake = f"tab in token {token!r}"
            fix = "a SentencePiece vocabulary cannot be used here"
        elif token in vocabulary:
            first = vocabulary[token] + 1
            mistake = f"duplicate token {token!r}, first on line {first}"
            expected, fix = "unique tokens", "remove one of the two"
        else:
            vocabulary[token] = number - 1
            continue
        raise UserError(
            mistake, path=path, line=number, expected=expected, fix=fix
        )

    # All sequences need these tokens.
    missing = [token for token in SPECIAL_TOKENS if token not in vocabulary]
    if missing:
        raise UserError(
            f"no {' '.join(missing)} among {len(vocabulary)} tokens",
            path=path,
            expected=f"the special tokens {' '.join(SPECIAL_TOKENS)}",
            fix="add them, each on its own line",
        )

    return vocabulary


def write_vocabulary(path: str, tokens: list[str]) -> None:
    """Writes one token per line; several processes may write the same file.

    Args:
        path: str. The file.
        tokens: list of str. Tokens in the order of their ids.

    Raises:
        UserError: The file cannot be written.
    """
    content = "".join(f"{token}\n" for token in tokens)
    write_whole(path, content, is_shared=True)


def read_bytes(path: str) -> bytes:
    """Reads the bytes of a vocabulary file.

    Raises:
        UserError: The file cannot be read, or has a byte order mark.
    """
    try:
        with storage.open_file(path, "rb") as file:
            raw = file.read()
    except OSError as error:
        raise text_lines.unreadable(
            path, error, "a vocabulary file", downloads.advice(path)
        ) from None

    # The mark would become part of the first token.
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

    Args:
        vocab_size: int. Number of embeddings in the config.
        num_tokens: int. Number of tokens of the vocabulary.
    """
    return vocab_size % 8 == 0 and 0 < vocab_size - num_tokens < 128


def read_words(path: str) -> list[str]:
    """Reads words to add to a vocabulary, one per line; skips blank lines.

    Args:
        path: str. The file.

    Returns:
        list of str. The words, in order.

    Raises:
        UserError: The file cannot be read, or a line has several words or a
            duplicate word.
    """
    lines: dict[str, int] = {}
    for number, line in text_lines.lines(path):
        word = line.strip()
        if word in lines or word.split() not in ([], [word]):
            raise UserError(
                f"duplicate word {word!r}" if word in lines else f"{word!r}",
                path=path,
                line=number,
                expected="one word per line, each word once",
            )
        if word:
            lines[word] = number

    return list(lines)


def add_words(
    tokens: list[str], words: list[str]
) -> tuple[list[str], list[int]]:
    """Fills unused slots with words, then appends the other words.

    Args:
        tokens: list of str. Tokens of the vocabulary, in order of their ids.
        words: list of str. Words to add, which are not tokens yet.

    Returns:
        (list of str, list of int). The new tokens, and the id of each added
        word.
    """
    # Unused slots first, as they already have embeddings.
    free = unused_slots(tokens)
    more = range(len(tokens), len(tokens) + len(words) - len(free))
    ids = [*free, *more][: len(words)]

    # This is a copy; the caller's list is not changed.
    extended = [*tokens, *words[len(free) :]]
    for i, word in zip(ids, words):
        extended[i] = word
    return extended, ids


def unused_slots(tokens: list[str]) -> list[int]:
    """Returns the ids of the `[unusedN]` tokens, in order."""
    return [i for i, t in enumerate(tokens) if re.fullmatch(UNUSED, t)]
