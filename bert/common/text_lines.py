"""Reads lines of UTF-8 text files, local or remote, plain or `.gz`.

All text is read with this module. A line ends at a newline only. A wrong,
corrupt or malicious file causes an error message instead of exhausted memory.
For JSON, see `formats.json_files`.
"""

import contextlib
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from bert.common import storage
from bert.common.errors import UserError

LONGEST_LINE = 1 << 25  # bytes: 32 MiB, the text of 40 books
# Text compresses to a third or a tenth. The ratio is checked only after many
# bytes, as a short file may repeat one word.
HIGHEST_RATIO = 200
_RATIO_FROM = 1 << 26
_BLOCK = 1 << 20  # maximum number of bytes read at once
_START = 40  # bytes; every second byte of ASCII in UTF-16 is zero
_SAVE_AS = "save it as text: in a spreadsheet program, as CSV with UTF-8"
_ICONV = "convert the file, for example with `iconv -f utf-16 -t utf-8`"
_NOT_WINDOWS = frozenset(b"\0\x81\x8d\x8f\x90\x9d")  # undefined in cp1252
_UNPACK = "decompress it, for example with `{}`, or compress it with gzip"
_OTHER_KINDS = {  # first bytes -> kind and advice
    b"\xff\xfe": ("UTF-16", _ICONV),
    b"\xfe\xff": ("UTF-16", _ICONV),
    b"PK\x03\x04": ("a zip archive, such as .xlsx or .docx", _SAVE_AS),
    b"\xd0\xcf\x11\xe0": ("an Office file, such as .xls or .doc", _SAVE_AS),
    b"%PDF-": ("a PDF", "extract its text, for example with `pdftotext`"),
    b"PAR1\x15": ("a Parquet file", "prepare_corpus.py reads NAME.parquet"),
    b"\x1f\x8b": (
        "compressed with gzip",
        "decompress it, or, unless it is a vocabulary, let its name end in .gz",
    ),
    b"\x80": ("a pickle", "pass a text"),
    b"\x89HDF": ("an HDF5 file", "pass a text"),
    **{
        b"BZh%d1AY" % size: ("compressed with bzip2", _UNPACK.format("bzcat"))
        for size in range(1, 10)
    },
    b"\xfd7zXZ": ("compressed with xz", _UNPACK.format("xzcat")),
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", _UNPACK.format("zstdcat")),
}


class Span(NamedTuple):
    """A range of whole lines of a file.

    Attributes:
        path: str. The file.
        line: int. Number of the first line, from 1. Default: 1.
        start: int. Offset of the first byte in the text, which is
            decompressed. Default: 0.
        stop: int or None. Offset of the end. Default: None, the end of the
            file.
    """

    path: str
    line: int = 1
    start: int = 0
    stop: int | None = None


class Block(NamedTuple):
    """Whole lines of a file.

    Attributes:
        line: int. Number of the first line, from 1.
        start: int. Offset of the first byte in the text.
        content: bytes. The lines with their newlines; the last line of a file
            may lack it.
    """

    line: int
    start: int
    content: bytes


def reject(error: UserError) -> None:
    """Raises the error of a line that cannot be read."""
    raise error


@contextlib.contextmanager
def opened(path: str, stream=None) -> Iterator:
    """Context manager that opens a file and converts its errors.

    Args:
        path: str. The file.
        stream: binary file or None. The open file, which stays open. Default:
            None, open `path`.

    Raises:
        UserError: The file cannot be opened, read or decompressed.
    """
    try:
        if stream:
            yield stream
            return
        with storage.open_file(path, "rb") as file:
            yield file
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(path, error) from None


def blocks(
    span: Span, file, on_read: Callable[[int], None] | None = None
) -> Iterator[Block]:
    """Yields blocks of whole lines as soon as they can be read.

    A line of more than `LONGEST_LINE` bytes is a block that `check` rejects:
    its first bytes without a newline.

    Args:
        span: Span. The range to read. The file is decompressed if the path
            ends in `.gz`.
        file: binary file. The open file, also already decompressed. It is
            read from its position if the span is the whole file.
        on_read: callable or None. Called after each block with the number of
            bytes read so far.

    Raises:
        UserError: The compression ratio is too high.
    """
    path, line, start, stop = span
    text, is_packed = file, path.endswith(".gz")
    if is_packed and not isinstance(file, gzip.GzipFile):
        text = gzip.GzipFile(fileobj=file)
    if start or stop is not None:
        text.seek(start)

    # A pipe gives its next lines at once, so `read` would wait for more.
    read = text.read if is_packed else getattr(text, "read1", text.read)
    held, position, is_cut = b"", start, False
    while chunk := read(
        _BLOCK if stop is None else min(_BLOCK, stop - position)
    ):
        position += len(chunk)
        if is_packed:
            check_ratio(position, text.fileobj, path, line)
        held += chunk
        if is_cut:
            end = held.find(b"\n") + 1
            held, is_cut = held[end:] if end else b"", not end
            start, line = position - len(held), line + (not is_cut)

        end = held.rfind(b"\n") + 1
        if end:
            yield Block(line, start, held[:end])
            line, start = line + held.count(b"\n", 0, end), start + end
            held = held[end:]
        if len(held) > LONGEST_LINE:
            yield Block(line, start, held[: LONGEST_LINE + 1])
            held, is_cut = b"", True
        if on_read:
            on_read(file.tell())
    if held:
        yield Block(line, start, held)


def numbered(
    span: Span, file, on_read: Callable[[int], None] | None = None
) -> Iterator[tuple[int, int, bytes]]:
    """Yields number, from 1, offset and content of each line; see `blocks`."""
    for line, start, content in blocks(span, file, on_read):
        for number, raw in enumerate(io.BytesIO(content), line):
            yield number, start, raw
            start += len(raw)


def lines(
    path: str,
    on_read: Callable[[int], None] | None = None,
    on_bad: Callable[[UserError], None] = reject,
    stream=None,
    sha256=None,
    span: Span | None = None,
    offsets: dict[int, int] | None = None,
) -> Iterator[tuple[int, str]]:
    """Yields the number, from 1, and the text of each line, with its newline.

    A byte order mark is dropped.

    Args:
        path: str. The file; `.gz` is decompressed.
        on_read: callable or None. Called from time to time with the number of
            bytes read so far.
        on_bad: callable. Called with the error of a line of invalid UTF-8,
            which is then yielded as a blank line. Default: raise the error.
        stream: binary file or None. The open file; None opens `path`.
        sha256: hash or None. Updated with the bytes of the file.
        span: Span or None. The lines to read. Default: None, all lines.
        offsets: dict or None. Gets the offset of each line, by its number.

    Raises:
        UserError: The file cannot be read or is not text, its lines end in
            carriage returns, a line is too long or invalid UTF-8, or the
            compression ratio is too high.
    """
    with opened(path, stream) as file:
        for number, start, raw in numbered(span or Span(path), file, on_read):
            if offsets is not None:
                offsets[number] = start
            # Before decoding: this names the kind of a wrong file.
            check(raw, path, number)
            try:
                line = decode(raw, path, number)
            except UserError as error:
                on_bad(error)
                line = "\n"
            yield number, line
        if sha256:
            storage.update_hash(sha256, file)


def divide(path: str, num_bytes: float) -> Iterator[tuple[Span, int]]:
    """Divides a file into ranges of whole lines.

    Args:
        path: str. The file; `.gz` is decompressed.
        num_bytes: float. Size of a range, which ends with the line that
            exceeds it.

    Yields:
        (Span, int). A range and its number of lines.

    Raises:
        UserError: The file cannot be read.
    """
    with opened(path) as file:
        starts = ((x, n, True) for x, n, _ in numbered(Span(path), file))
        yield from spans(path, starts, num_bytes)


def spans(
    path: str, rows: Iterable[tuple[int, int, bool]], num_bytes: float
) -> Iterator[tuple[Span, int]]:
    """Joins the rows of a file to ranges.

    Args:
        path: str. The file.
        rows: iterable of (int, int, bool). Number and offset of the first line
            of each row, and whether a range may begin with it.
        num_bytes: float. Minimum size of a range, except the last.

    Yields:
        (Span, int). A range and its number of rows.
    """
    span, count = None, 0
    for line, start, may_begin in rows:
        if span and may_begin and start - span.start >= num_bytes:
            yield span._replace(stop=start), count
            span, count = None, 0
        span = span or Span(path, line, start)
        count += 1
    if span:
        yield span, count


def decode(raw: bytes, path: str, line: int) -> str:
    """Decodes a line; a byte order mark in the first line is dropped.

    Args:
        raw: bytes. The line.
        path: str. The file, for the message.
        line: int. Number of the line, from 1.

    Raises:
        UserError: The line is not UTF-8.
    """
    try:
        return raw.decode("utf-8-sig" if line == 1 else "utf-8")
    except UnicodeDecodeError as error:
        fix = "convert the file to UTF-8"
        # Damaged UTF-8 usually has valid characters before the damage.
        if raw[: error.start].isascii() and not _NOT_WINDOWS.intersection(raw):
            fix += ", for example with `iconv -f cp1252 -t utf-8`"
        raise UserError(
            f"invalid UTF-8 byte {error.object[error.start]:#04x} at column "
            f"{error.start + 1}",
            path=path,
            line=line,
            fix=fix,
        ) from None


def unreadable(
    path: str,
    error: Exception,
    expected: str = "a text file",
    fix: str | None = None,
) -> UserError:
    """Converts an error of the system or of gzip about a file."""
    cause = getattr(error, "strerror", None) or f"cannot be read: {error}"
    if isinstance(error, IsADirectoryError):
        cause = "is a folder"
    return UserError(cause, path=path, expected=expected, fix=fix)


def check(raw: bytes, path: str, line: int) -> None:
    """Checks the length of a line, and the first line with `check_start`.

    Raises:
        UserError: The line is too long, or the file is not text.
    """
    if line == 1:
        check_start(raw, path)
    if len(raw) > LONGEST_LINE:
        raise UserError(
            f"a line of more than {LONGEST_LINE:,} bytes",
            path=path,
            line=line,
            expected="text in lines",
            fix="break it into shorter ones, for example with `fold -s`",
        )


def check_ratio(size: int, packed, path: str, line: int) -> None:
    """Checks the compression ratio of a large file while it is read.

    Args:
        size: int. Number of decompressed bytes so far.
        packed: binary file. The open compressed file.
        path, line: str, int. File and line number for the message.

    Raises:
        UserError: The ratio is too high for text.
    """
    if size > max(_RATIO_FROM, HIGHEST_RATIO * packed.tell()):
        raise UserError(
            f"more than {HIGHEST_RATIO} times as large when "
            f"decompressed, {size:,} bytes so far",
            path=path,
            line=line,
            expected="compressed text",
            fix="if that is correct, decompress the file first",
        )


def check_start(raw: bytes, path: str) -> None:
    """Checks by its first bytes that a file is UTF-8 text with newlines.

    Args:
        raw: bytes. The first line, or more.
        path: str. The file, for the message.

    Raises:
        UserError: The file is of another kind, or its lines end in carriage
            returns.
    """
    kind, fix = next(
        (x for start, x in _OTHER_KINDS.items() if raw.startswith(start)),
        (None, None),
    )
    start = raw[:_START]
    if len(start) > 3 and not (any(start[::2]) and any(start[1::2])):
        kind, fix = _OTHER_KINDS[b"\xff\xfe"]  # without a byte order mark
    if kind:
        raise UserError(
            f"is {kind}", path=path, line=1, expected="UTF-8", fix=fix
        )
    if raw.split(b"\n", 1)[0].rstrip(b"\r").count(b"\r") > 1:
        raise UserError(
            "line ends are lone carriage returns",
            path=path,
            line=1,
            expected="newlines",
            fix="convert the file, for example with `tr '\\r' '\\n'`",
        )
