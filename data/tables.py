"""Rows of TSV, CSV and JSONL files, with the line that each came from.

    .tsv, and any other ending   fields between tabs; quotes are characters
    .csv                         commas, quoted fields, also over lines
    .jsonl, .json                an object a line; its keys are the columns

A byte order mark, CRLF and blank lines at the end are let pass.
"""

import csv
import json
import os
from collections.abc import Iterator
from typing import NamedTuple

import storage
from data import surrogates
from errors import UserError

Column = str | int  # its name, or its number from 0; -1 the last
MAX_CHARACTERS = 131_072  # of a field, as Python's csv has it


class Row(NamedTuple):
    """A row of a table.

    Attributes:
        line: where it begins, from 1.
        values: one for each column that was asked for: str, or what JSON
            makes of it in .jsonl files.
    """

    line: int
    values: list


def rows(
    path: str,
    columns: list[Column],
    header: bool,
    broken: list[int] | None = None,
) -> Iterator[Row]:
    """Yields rows as they are read; memory does not grow with the file.

    Args:
        path: the file; its ending says how it is written.
        columns: what to read, by name (with a header) or number.
        header: line 1 names the columns; .jsonl files need none.
        broken: takes the lines of rows with too few or too many fields,
            which are left out then.

    Raises:
        UserError: there is no such file or column, a line is no UTF-8, or a
            row has too few or too many fields.
    """
    if _is_json(path):
        yield from _json_rows(path, columns)
        return
    split = _csv_rows if path.endswith(".csv") else _tab_rows
    width, places = None, columns
    for line, fields in split(path):
        if width is None:
            width = len(fields)
            if header:
                places = [_place(x, fields, path) for x in columns]
                continue
            for column in columns:
                _place(column, ["?"] * width, path)
        if len(fields) != width:
            if broken is not None:
                broken.append(line)
                continue
            first = "the header" if header else "line 1"
            raise UserError(
                f"{_count(len(fields))}",
                path=path,
                line=line,
                expected=f"{width}, as {first} has",
                fix="is a tab or a comma missing, or one too many?",
            )
        yield Row(line, [fields[place] for place in places])


def header(path: str) -> list[str]:
    """The fields of line 1; of a .jsonl file, its keys.

    Raises:
        UserError: as `rows`; or the file is empty.
    """
    if _is_json(path):
        for _, value in _json_objects(path):
            return list(value)
    split = _csv_rows if path.endswith(".csv") else _tab_rows
    for _, fields in split(path):
        return fields
    raise _empty(path)


def _is_json(path: str) -> bool:
    return path.endswith((".jsonl", ".json"))


def _empty(path: str) -> UserError:
    return UserError("is empty", path=path, expected="a row a line")


def _count(fields: int) -> str:
    return f"{fields} column{'s' * (fields != 1)}"


def _place(column: Column, names: list[str], path: str) -> int:
    """The number of a column from its name or number."""
    if isinstance(column, str) and names.count(column) == 1:
        return names.index(column)
    if isinstance(column, int) and -len(names) <= column < len(names):
        return column
    twice = isinstance(column, str) and column in names
    known = _count(len(names))
    if set(names) != {"?"}:
        known += f": {', '.join(name[:40] for name in names[:20])}"
    raise UserError(
        f"{'two columns' if twice else 'no column'} {column!r}",
        path=path,
        line=1,
        expected=f"one of {known}",
        fix="name a column, or give its number, from 0",
    )


def _lines(path: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line, with its end; no blank ones at the end."""
    if not storage.exists(path):
        raise UserError("no such file", path=path)
    if storage.is_folder(path):
        raise UserError("is a folder", path=path, expected="a file")
    blank, number = [], 0
    with storage.open_file(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            if number == 1:
                raw = _check_start(raw, path)
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise UserError(
                    f"invalid UTF-8 byte 0x{raw[error.start]:02x} at column "
                    f"{error.start + 1}",
                    path=path,
                    line=number,
                    fix="convert the file, for example with "
                    "`iconv -f latin1 -t utf-8`",
                ) from None
            if not text.strip("\r\n"):
                blank.append((number, text))
                continue
            yield from blank
            blank = []
            yield number, text
    if len(blank) == number:
        raise _empty(path)


def _check_start(raw: bytes, path: str) -> bytes:
    """Line 1 without its byte order mark."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UserError(
            "is UTF-16",
            path=path,
            line=1,
            expected="UTF-8",
            fix="convert the file, for example with `iconv -f utf-16 -t utf-8`",
        )
    if raw.rstrip(b"\r\n").count(b"\r") > 1:
        raise UserError(
            "line ends are lone carriage returns",
            path=path,
            line=1,
            expected="newlines",
            fix="convert the file, for example with `tr '\\r' '\\n'`",
        )
    return raw.removeprefix(b"\xef\xbb\xbf")


def _tab_rows(path: str) -> Iterator[tuple[int, list[str]]]:
    for line, text in _lines(path):
        fields = text.removesuffix("\n").removesuffix("\r").split("\t")
        if len(text) > MAX_CHARACTERS:
            _check_sizes(fields, path, line)
        yield line, fields


def _check_sizes(fields: list[str], path: str, line: int) -> None:
    longest = max(map(len, fields), default=0)
    if longest > MAX_CHARACTERS:
        raise UserError(
            f"a field of {longest:,} characters",
            path=path,
            line=line,
            expected=f"at most {MAX_CHARACTERS:,}",
            fix="is the end of a line or a quote missing?",
        )


def _csv_rows(path: str) -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV file; a quoted field may run over lines."""
    reader = csv.reader((text for _, text in _lines(path)), strict=True)
    first = 1
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(
                f"this row cannot be read: {error}",
                path=path,
                line=first,
                fix='is a quote missing? Within quotes it is written ""',
            ) from None
        yield first, fields or [""]
        first = reader.line_num + 1


def _json_rows(path: str, columns: list[Column]) -> Iterator[Row]:
    for line, value in _json_objects(path):
        for column in columns:
            if column not in value:
                raise UserError(
                    f"no key {column!r}",
                    path=path,
                    line=line,
                    expected=f"one of {', '.join(list(value)[:20])}",
                )
        values = [value[column] for column in columns]
        for column, found in zip(columns, values, strict=True):
            surrogates.check(found, repr(column), path, line)
        _check_sizes([x for x in values if isinstance(x, str)], path, line)
        yield Row(line, values)


def _json_objects(path: str) -> Iterator[tuple[int, dict]]:
    for line, text in _lines(path):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UserError(
                f"is no JSON: {error}",
                path=path,
                line=line,
                expected=f"an object a line ({os.path.basename(path)})",
            ) from None
        if not isinstance(value, dict):
            raise UserError(
                f"{type(value).__name__} {text[:40].strip()!r}",
                path=path,
                line=line,
                expected="an object",
            )
        yield line, value
