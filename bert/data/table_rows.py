"""Fields of the rows of text tables, and ranges of whole rows.

A row of a CSV file may span lines; a row of any other file is a line.
"""

import csv
import itertools
import re
from collections.abc import Iterator
from typing import Any

from bert.common import text_lines
from bert.common.errors import UserError
from bert.common.formats import endings, parquet_files

_MAX_CHARACTERS = 1 << 24  # per quoted field, which may have many lines
_EXCEL = re.compile(r"sep=([^\"\r\n])\r?\n")  # line 1, written by Excel


def read_lines(
    path: str, sha256=None, **options: Any
) -> Iterator[tuple[int, str]]:
    """Yields number and text of each line, except blank lines at the end.

    Args:
        path, sha256, **options: See `text_lines.lines`.
    """
    count, blank, number = 0, "", 0  # blank lines before this one
    for number, text in text_lines.lines(path, sha256=sha256, **options):
        if not text.strip("\r\n"):
            count, blank = count + 1, text
            continue

        # The previous blank lines were not at the end of the file.
        for before in range(number - count, number):
            yield before, blank
        count = 0
        yield number, text

    # The file is empty, or all its lines are blank.
    if count == number:
        raise UserError("is empty", path=path, expected="a row per line")


def read(
    path: str, lines: Iterator[tuple[int, str]], delimiter: str | None
) -> tuple[str, Iterator[tuple[int, list[str]]]]:
    """Returns the delimiter, and number and fields of each row of text.

    Args:
        path: str. The file; its extension defines the format.
        lines: iterator. Lines of the file, see `read_lines`.
        delimiter: str or None. See `tables.scan`.
    """
    if endings.format_of(path) != "csv":
        tab = delimiter or "\t"
        return tab, (
            (number, x.removesuffix("\n").removesuffix("\r").split(tab))
            for number, x in lines
        )

    number, text = next(lines)
    excel = _EXCEL.match(text) if number == 1 else None
    if not excel:
        lines = itertools.chain([(number, text)], lines)
    delimiter = delimiter or (excel[1] if excel else ",")
    if len(delimiter) > 1:
        raise UserError(
            f"--delimiter={delimiter!r}", expected=f"one character for {path}"
        )
    first = number + 1 if excel else number
    return delimiter, _csv_rows(path, first, lines, delimiter)


def _csv_rows(
    path: str, first: int, lines: Iterator[tuple[int, str]], delimiter: str
) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows of a CSV file; quoted fields may span lines."""
    # By default, csv rejects fields of more than 131,072 characters.
    csv.field_size_limit(_MAX_CHARACTERS)
    texts = (text for _, text in lines)
    reader = csv.reader(texts, delimiter=delimiter, strict=True)
    before = first
    try:
        for fields in reader:
            if fields:  # the line is not blank
                yield first, fields
            first = reader.line_num + before
    except csv.Error as error:
        raise UserError(
            f"this row cannot be parsed: {error}",
            path=path,
            line=first,
            fix='is a quote missing? Within quotes, write ""',
        ) from None


def divide(
    path: str, num_bytes: float, header: bool, delimiter: str | None = None
) -> Iterator[tuple[text_lines.Span, int]]:
    """Divides a table into ranges of whole rows, without its header.

    Args:
        path, header, delimiter: See `tables.scan`.
        num_bytes: float. Size of a range, which ends with the row that
            exceeds it.

    Yields:
        (Span, int). A range and its number of rows.

    Raises:
        UserError: The file cannot be read or parsed.
    """
    file_format, offsets = endings.format_of(path), dict[int, int]()
    if file_format == "parquet":
        yield from parquet_files.divide(path, num_bytes)
        return

    def starts() -> Iterator[tuple[int, int, bool]]:
        lines = read_lines(path, offsets=offsets)
        _, rows = read(path, lines, delimiter_of(delimiter))
        if header and file_format != "json":
            next(rows, None)

        # Blank lines at the end of a range would not be read.
        is_blank = False
        for line, fields in rows:
            yield line, offsets.pop(line), not is_blank
            is_blank = fields == [""]
            if file_format == "csv":  # lines inside fields are not rows
                offsets.clear()

    yield from text_lines.spans(path, starts(), num_bytes)


def delimiter_of(given: str | None) -> str | None:
    """Converts a flag to a delimiter; `\\t` means a tab, which is hard to type.

    Raises:
        UserError: The delimiter is empty, or contains quotes or newlines.
    """
    if given is None:
        return None
    delimiter = given.replace("\\t", "\t")
    if not delimiter or set(delimiter) & set('"\r\n'):
        raise UserError(
            f"--delimiter={given!r}",
            expected="characters between two fields, such as ';'",
        )
    return delimiter
