"""Reads rows of TSV, CSV, JSONL and Parquet, with line numbers.

    .tsv, any other extension    fields separated by tabs; quotes are literal
    .csv                         fields separated by commas, or as in a first
                                 line `sep=;`; quoted fields may span lines
    .jsonl, .json                an object per line; its keys are the columns
    .parquet                     see `formats.parquet_files`; lines are rows

Text may be compressed, with `.gz` after its extension. A byte order mark, the
CR of CRLF, spaces around the names of columns, and blank lines at the end are
skipped. In CSV files, all blank lines are skipped.
"""

import csv
import itertools
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from bert.common import text_lines
from bert.common.errors import UserError
from bert.common.formats import json_files, parquet_files

Column = str | int  # name, or number from 0; -1 is the last
_MAX_CHARACTERS = 1 << 24  # per quoted field, which may have many lines
_DELIMITERS = (";", "\t", "|", ",")
_EXCEL = re.compile(r"sep=([^\"\r\n])\r?\n")  # line 1, written by Excel


class TableRow(NamedTuple):
    """A row of a table.

    Attributes:
        line: int. Line number of its start, from 1.
        values: list. Value of each requested column: str, or a parsed value
            in files with types (JSON, Parquet).
    """

    line: int
    values: list


def rows(
    path: str,
    columns: list[Column] | Callable[[list[str]], list[Column]],
    header: bool,
    broken: list[int] | None = None,
    delimiter: str | None = None,
) -> Iterator[TableRow]:
    """Yields the rows of a file, in bounded memory.

    Args:
        path: str. The file; its extension defines the format.
        columns: list or callable. Names (with a header) or numbers of the
            columns to read. A function gets the fields of line 1, or the
            column names of a file with types, and returns such a list.
        header: bool. Whether line 1 has the names of the columns; ignored for
            files with types.
        broken: list or None. Receives the line numbers of rows with too few
            or too many fields, which are skipped. None: such rows are errors.
        delimiter: str or None. Separator of the fields of a .csv or .tsv
            file. Default: as in the module's docstring.

    Raises:
        UserError: The file or a column does not exist, a line has invalid
            UTF-8, or a row has too few or too many fields.
    """
    choose = columns if callable(columns) else lambda names: columns
    if has_types(path):
        reader = _json_rows if json_files.is_json(path) else _parquet_rows
        yield from reader(path, choose)
        return

    # The first line determines the number of fields.
    width = None
    for line, fields in _split(path, delimiter):
        if width is None:
            # Line 1: the header, perhaps "text, label", or the first row.
            width = len(fields)
            fields = [name.strip() for name in fields] if header else fields
            columns = choose(fields)
            names = fields if header else ["?"] * width
            wanted = [x.strip() if isinstance(x, str) else x for x in columns]
            indices = [_index(x, names, path, line) for x in wanted]
            if header:
                continue

        if len(fields) != width:
            if broken is not None:
                broken.append(line)
                continue
            first = "the header" if header else "line 1"
            raise UserError(
                _count(len(fields)),
                path=path,
                line=line,
                expected=f"{width}, as {first} has",
                fix="is a tab or a comma missing, or one too many?",
            )
        yield TableRow(line, [fields[i] for i in indices])


def has_types(path: str) -> bool:
    """Returns whether a file has typed values and named columns."""
    return json_files.is_json(path) or parquet_files.is_parquet(path)


def is_csv(path: str) -> bool:
    """Returns whether a file name means CSV."""
    return path.removesuffix(".gz").endswith(".csv")


def is_table(path: str) -> bool:
    """Returns whether a file name means a table with columns."""
    is_text = path.removesuffix(".gz").endswith((".csv", ".tsv"))
    return is_text or parquet_files.is_parquet(path)


def column_of(given: str | None) -> Column | None:
    """Converts the value of a flag to a column; digits are its number."""
    if given is None or not given.removeprefix("-").isdecimal():
        return given
    return int(given)


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


def text_of(value, what: str) -> str:
    """Converts a string or number of a row to text.

    Raises:
        UserError: The value has another type, or is NaN, which pandas writes
            for a missing cell.
    """
    if isinstance(value, str):
        return value

    # In Python, True is an int, and NaN is not equal to itself.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and value == value:
        return str(value)
    shown = "null" if value is None else repr(value)
    raise UserError(f"the {what} is {shown}", expected="a string")


def first_few(lines: list[int]) -> str:
    """Formats line numbers for a message."""
    shown = list(map(str, lines[:5]))
    if len(lines) > 5:
        shown.append("...")
    return ", ".join(shown)


def _count(fields: int) -> str:
    return "1 column" if fields == 1 else f"{fields} columns"


def _index(
    column: Column, names: list[str], path: str, line: int | None
) -> int:
    """Returns the number of a column, from its name or number."""
    if isinstance(column, str) and names.count(column) == 1:
        return names.index(column)
    if isinstance(column, int) and -len(names) <= column < len(names):
        return column

    # The message lists the columns and suggests a cause.
    is_duplicate = isinstance(column, str) and column in names
    expected = f"one of {_count(len(names))}"
    if set(names) != {"?"}:  # "?" stands for unnamed columns
        expected += f": {', '.join(name[:40] for name in names[:20])}"
    fix = "pass the name of a column, or its number, from 0"

    # A single column that contains a delimiter may be split by it.
    others = [x for x in _DELIMITERS if len(names) == 1 and x in names[0]]
    if others:
        shown = others[0].replace("\t", "\\t")
        fix = f"the fields seem to end at {shown!r}: pass --delimiter='{shown}'"
    raise UserError(
        f"{'duplicate' if is_duplicate else 'no'} column {column!r}",
        path=path,
        line=line,
        expected=expected,
        fix=fix,
    )


def _lines(path: str) -> Iterator[tuple[int, str]]:
    """Yields number and text of each line, except blank lines at the end."""
    count, blank, number = 0, "", 0  # blank lines before this one
    for number, text in text_lines.lines(path):
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


def _split(path: str, delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
    if is_csv(path):
        yield from _csv_rows(path, delimiter)
        return
    for line, text in _lines(path):
        text = text.removesuffix("\n").removesuffix("\r")
        yield line, text.split(delimiter or "\t")


def _csv_rows(
    path: str, delimiter: str | None
) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows of a CSV file; quoted fields may span lines."""
    lines = _lines(path)
    line_1 = next(lines)
    excel = _EXCEL.match(line_1[1])
    if not excel:
        lines = itertools.chain([line_1], lines)
    delimiter = delimiter or (excel[1] if excel else ",")
    if len(delimiter) > 1:
        raise UserError(
            f"--delimiter={delimiter!r}", expected=f"one character for {path}"
        )

    # By default, csv rejects fields of more than 131,072 characters.
    csv.field_size_limit(_MAX_CHARACTERS)
    texts = (text for _, text in lines)
    reader = csv.reader(texts, delimiter=delimiter, strict=True)
    first = before = 2 if excel else 1
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


def _parquet_rows(path: str, choose: Callable) -> Iterator[TableRow]:
    def named(names: list[str]) -> list[str]:
        return [names[_index(x, names, path, None)] for x in choose(names)]

    line = 0
    for line, values in parquet_files.rows(path, named):
        yield TableRow(line, values)
    if not line:
        raise UserError("is empty", path=path, expected="rows")


def _json_rows(path: str, choose: Callable) -> Iterator[TableRow]:
    # Columns are chosen by the first object; all objects must have them.
    columns = None
    for line, text in _lines(path):
        with json_files.reported(path, "an object per line", line=line):
            value = json_files.decode(text, dict)

        columns = columns or choose(list(value))
        for column in columns:
            if column not in value:
                raise UserError(
                    f"no key {column!r}",
                    path=path,
                    line=line,
                    expected=f"one of {', '.join(list(value)[:20])}",
                )
        yield TableRow(line, [value[column] for column in columns])
