"""Reads and writes vocabulary files."""

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
    lines = text_lines.decode_block(content, path)

    # The number of a line is an id, so lines cannot be skipped.
    for number, line in enumerate(lines, start=1):
        token = line.strip(" \t\r\n")
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
