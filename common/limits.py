"""Limits on the size of text, which may be corrupt or untrusted.

Text is read by lines. Beyond the limits it ends in an error message instead of
exhausted memory. For JSON, see `formats.json_files`.
"""

import gzip
from collections.abc import Iterator

from common.errors import UserError

LONGEST_LINE = 1 << 25  # bytes: 32 MiB, the text of 40 books
# Text compresses to a third or a tenth. The ratio is checked only after many
# bytes, as a short file may repeat one word.
HIGHEST_RATIO = 200
_RATIO_FROM = 1 << 26
_SAVE_AS = "save it as text: in a spreadsheet program, as CSV with UTF-8"
_ICONV = "convert the file, for example with `iconv -f {} -t utf-8`"
_UNPACK = "decompress it, for example with `{}`, or compress it with gzip"
_OTHER_KINDS = {  # first bytes -> kind, and what to do
    b"\xff\xfe": ("UTF-16", _ICONV.format("utf-16")),
    b"\xfe\xff": ("UTF-16", _ICONV.format("utf-16")),
    b"PK\x03\x04": ("a zip archive, such as .xlsx or .docx", _SAVE_AS),
    b"\xd0\xcf\x11\xe0": ("an Office file, such as .xls or .doc", _SAVE_AS),
    b"%PDF": ("a PDF", "extract its text, for example with `pdftotext`"),
    b"PAR1": ("a Parquet file", "prepare_corpus.py reads NAME.parquet"),
    b"\x1f\x8b": (
        "compressed with gzip",
        "rename it: its name must end in .gz",
    ),
    b"BZh": ("compressed with bzip2", _UNPACK.format("bzcat")),
    b"\xfd7zXZ": ("compressed with xz", _UNPACK.format("xzcat")),
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", _UNPACK.format("zstdcat")),
}


def lines(file, path: str) -> Iterator[tuple[int, bytes]]:
    """Yields the number and the bytes of each line, with its line end.

    Args:
        file: open for reading in binary mode.
        path: its path; `.gz` is decompressed.

    Raises:
        UserError: a line is too long, the compression ratio too high, or the
            file is of another kind than text in UTF-8.
    """
    is_packed = path.endswith(".gz")
    text = gzip.GzipFile(fileobj=file) if is_packed else file
    number = size = 0
    while raw := text.readline(LONGEST_LINE + 1):
        number += 1
        size += len(raw)
        if number == 1:
            check_kind(raw, path)
        if len(raw) > LONGEST_LINE:
            raise UserError(
                f"a line of more than {LONGEST_LINE:,} bytes",
                path=path,
                line=number,
                expected="text in lines",
                fix="break it into shorter ones, for example with `fold -s`",
            )
        if is_packed:
            check_ratio(size, file, path, number)
        yield number, raw


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


def check_kind(raw: bytes, path: str) -> None:
    """Checks that a file is text in UTF-8, by its first bytes.

    Args:
        raw: the first line, or more.
        path: for the message.

    Raises:
        UserError: the file is of another kind.
    """
    kind, fix = next(
        (x for start, x in _OTHER_KINDS.items() if raw.startswith(start)),
        (None, None),
    )
    first = raw[:4].removesuffix(b"\n")
    even, odd = first[::2], first[1::2]
    encoding = None
    if odd and all(odd) and not any(even):
        encoding = "utf-16be"
    elif odd and len(odd) == len(even) and all(even) and not any(odd):
        encoding = "utf-16le"
    if kind is None and encoding:
        kind, fix = "UTF-16", _ICONV.format(encoding)
    if kind:
        raise UserError(
            f"is {kind}", path=path, line=1, expected="UTF-8", fix=fix
        )
