"""How much of an input is read: files may be broken, or a stranger's.

Text is read by lines, in bounded memory, JSON as a whole. What is longer ends
in one line instead of all memory.
"""

import gzip
from collections.abc import Iterator

from common import storage
from common.errors import UserError

LONGEST_LINE = 1 << 28  # bytes: 256 MiB, the text of 300 books
LARGEST_JSON = 1 << 30  # bytes when unpacked: SQuAD has 42 million
# Text is packed to a third or a tenth, never to so little. It is compared
# only after many bytes, as a short file may be one word again and again.
HIGHEST_RATIO = 200
_RATIO_FROM = 1 << 30
_GZIP = b"\x1f\x8b"
_AT_ONCE = 1 << 20


def lines(text, path: str, packed=None) -> Iterator[tuple[int, bytes]]:
    """Yields the number and the bytes of each line, with its end.

    Args:
        text: file, open for reading in binary mode.
        path: for messages.
        packed: the compressed file that is unpacked by `text`, if it is.

    Raises:
        UserError: a line is too long, or too much is unpacked.
    """
    # TensorFlow's files read whole lines alone.
    is_whole = storage.is_remote(path) and not packed
    most = () if is_whole else (LONGEST_LINE + 1,)
    number = size = 0
    while raw := text.readline(*most):
        number += 1
        size += len(raw)
        if len(raw) > LONGEST_LINE:
            raise UserError(
                f"a line of more than {LONGEST_LINE:,} bytes",
                path=path,
                line=number,
                expected="text in lines",
            )
        is_large = packed and size > _RATIO_FROM
        if is_large and size > HIGHEST_RATIO * packed.tell():
            raise UserError(
                f"more than {HIGHEST_RATIO} times as large when it is "
                f"unpacked, {size:,} bytes so far",
                path=path,
                line=number,
                expected="compressed text",
                fix="where that is right, unpack it before",
            )
        yield number, raw


def read_json(file, path: str) -> bytes:
    """Reads a whole file of JSON, plain or compressed with gzip.

    Args:
        file: open for reading in binary mode.
        path: for messages.

    Raises:
        UserError: it is too large.
        OSError, EOFError, zlib.error: it cannot be read.
    """
    is_packed = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    text = gzip.GzipFile(fileobj=file) if is_packed else file
    parts, size = [], 0
    while part := text.read(_AT_ONCE):
        parts.append(part)
        size += len(part)
        if size > LARGEST_JSON:
            unpacked = " when it is unpacked" * is_packed
            raise UserError(
                f"more than {LARGEST_JSON:,} bytes{unpacked}",
                path=path,
                expected="JSON that fits into memory",
                fix="split it",
            )
    return b"".join(parts)
