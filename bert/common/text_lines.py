"""Lines of text files: UTF-8, local and remote, plain or compressed in `.gz`.

All readers of text take lines from here. A line ends at a newline only; a file
that is wrong, corrupt or untrusted ends in an error message instead of
exhausted memory. For JSON, see `formats.json_files`.
"""

import gzip
import zlib
from collections.abc import Callable, Iterator

from bert.common import storage
from bert.common.errors import UserError

LONGEST_LINE = 1 << 25  # bytes: 32 MiB, the text of 40 books
# Text compresses to a third or a tenth. The ratio is checked only after many
# bytes, as a short file may repeat one word.
HIGHEST_RATIO = 200
_RATIO_FROM = 1 << 26
_SAVE_AS = "save it as text: in a spreadsheet program, as CSV with UTF-8"
_ICONV = "convert the file, for example with `iconv -f utf-16 -t utf-8`"
_NOT_WINDOWS = frozenset(b"\0\x81\x8d\x8f\x90\x9d")  # of cp1252
_UNPACK = "decompress it, for example with `{}`, or compress it with gzip"
_OTHER_KINDS = {  # first bytes -> kind, and what to do
    b"\xff\xfe": ("UTF-16", _ICONV),
    b"\xfe\xff": ("UTF-16", _ICONV),
    b"PK\x03\x04": ("a zip archive, such as .xlsx or .docx", _SAVE_AS),
    b"\xd0\xcf\x11\xe0": ("an Office file, such as .xls or .doc", _SAVE_AS),
    b"%PDF": ("a PDF", "extract its text, for example with `pdftotext`"),
    b"PAR1": ("a Parquet file", "prepare_corpus.py reads NAME.parquet"),
    b"\x1f\x8b": (
        "compressed with gzip",
        "decompress it, or, unless it is a vocabulary, let its name end in .gz",
    ),
    b"\x80": ("a pickle", "pass a text"),
    b"\x89HDF": ("an HDF5 file", "pass a text"),
    b"BZh": ("compressed with bzip2", _UNPACK.format("bzcat")),
    b"\xfd7zXZ": ("compressed with xz", _UNPACK.format("xzcat")),
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", _UNPACK.format("zstdcat")),
}


def reject(error: UserError) -> None:
    """Raises the error of a line that cannot be read."""
    raise error


def lines(
    path: str,
    on_read: Callable[[int], None] | None = None,
    on_bad: Callable[[UserError], None] = reject,
    stream=None,
) -> Iterator[tuple[int, str]]:
    """Yields the number, from 1, and the text of each line, with its end.

    A byte order mark is dropped.

    Args:
        path: the file; `.gz` is decompressed.
        on_read: called for every 1,000th line with the bytes read so far.
        on_bad: called with the error of a line of invalid UTF-8, which is
            then yielded as a blank one.
        stream: the file, if it is open; in binary mode.

    Raises:
        UserError: the file cannot be read or is no text, its lines end in
            carriage returns, one is too long or of invalid UTF-8, or the
            compression ratio is too high.
    """
    is_packed = path.endswith(".gz")
    number = size = 0
    try:
        with stream or storage.open_file(path, "rb") as file:
            text = gzip.GzipFile(fileobj=file) if is_packed else file
            while raw := text.readline(LONGEST_LINE + 1):
                number += 1
                size += len(raw)

                # Before decoding, which would say less of another kind of file.
                check(raw, path, number)
                if is_packed:
                    check_ratio(size, file, path, number)
                try:
                    line = decode(raw, path, number)
                except UserError as error:
                    on_bad(error)
                    line = "\n"
                yield number, line
                if on_read and number % 1000 == 0:
                    on_read(file.tell())
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(path, error) from None


def decode(raw: bytes, path: str, line: int) -> str:
    """Decodes a line, the first without a byte order mark.

    Args:
        raw: the line.
        path, line: for the message.

    Raises:
        UserError: it is not UTF-8.
    """
    try:
        return raw.decode("utf-8-sig" if line == 1 else "utf-8")
    except UnicodeDecodeError as error:
        fix = "convert the file to UTF-8"
        # Damaged UTF-8 mostly has whole characters before the damage.
        if raw[: error.start].isascii() and not _NOT_WINDOWS.intersection(raw):
            fix += ", for example with `iconv -f cp1252 -t utf-8`"
        raise UserError(
            f"invalid UTF-8 byte {error.object[error.start]:#04x} at column "
            f"{error.start + 1}",
            path=path,
            line=line,
            fix=fix,
        ) from None


def decode_block(raw: bytes, path: str, first: int = 1) -> list[str]:
    """Decodes many lines at once.

    Args:
        raw: whole lines; the last may lack its newline.
        path: for the message.
        first: number of the first line.

    Returns:
        the lines, without newlines.

    Raises:
        UserError: a line is not UTF-8; or, if `first` is 1, as `check_start`.
    """
    if first == 1:
        check_start(raw, path)
    try:
        texts = decode(raw, path, first).split("\n")
    except UserError:
        # Line by line this time, to name the bad one.
        for number, line in enumerate(raw.split(b"\n"), first):
            decode(line, path, number)
        raise
    if not texts[-1]:
        texts.pop()
    return texts


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
    """Checks the length of a line, and of the first one as `check_start`.

    Raises:
        UserError: it is too long.
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
        size: decompressed bytes so far.
        packed: the compressed file, open.
        path, line: for the message.

    Raises:
        UserError: the ratio is too high for text.
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
    """Checks that a file is text in UTF-8 with newlines, by its first bytes.

    Args:
        raw: the first line, or more.
        path: for the message.

    Raises:
        UserError: the file is of another kind, or its lines end in carriage
            returns.
    """
    kind, fix = next(
        (x for start, x in _OTHER_KINDS.items() if raw.startswith(start)),
        (None, None),
    )
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
