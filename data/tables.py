"""Rows of TSV, CSV and JSONL files, with the line that each came from.

    .tsv, and any other ending   fields between tabs; quotes are characters
    .csv                         commas, quoted fields, also over lines
    .jsonl, .json                an object a line; its keys are the columns

Each may be compressed, with `.gz` behind its ending. A byte order mark, CRLF,
blank lines at the end and, in a CSV file, anywhere are skipped.
"""

import csv
import gzip
import json
import os
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from common import limits, storage
from common.errors import UserError
from data.text import surrogates

Column = str | int  # its name, or its number from 0; -1 the last
MAX_CHARACTERS = 1 << 24  # of a field
_LONG = 131_072  # characters of a field that was hardly meant as one


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
    long: list[int] | None = None,
    delimiter: str | None = None,
) -> Iterator[Row]:
    """Yields rows as they are read; memory does not grow with the file.

    Args:
        path: the file; its ending says how it is written.
        columns: what to read, by name (with a header) or number.
        header: line 1 names the columns; .jsonl files need none.
        broken: takes the lines of rows with too few or too many fields,
            which are left out then.
        long: takes the lines of rows with a field of more than 131,072
            characters, for `describe_long`.
        delimiter: between the fields of a .csv or .tsv file; None: a comma,
            a tab.

    Raises:
        UserError: there is no such file or column, a line is no UTF-8, or a
            row has too few or too many fields, or one that is too long.
    """
    long = [] if long is None else long
    if is_json(path):
        yield from _json_rows(path, columns, long)
        return
    width, places = None, columns
    for line, fields in _split(path, delimiter):
        if width is None:
            width = len(fields)
            if header:
                places = [_place(x, fields, path, line) for x in columns]
                continue
            for column in columns:
                _place(column, ["?"] * width, path, line)
        _check_sizes(fields, path, line, long)
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


def header(path: str, delimiter: str | None = None) -> list[str]:
    """The fields of line 1; of a .jsonl file, its keys.

    Raises:
        UserError: as `rows`; or the file is empty.
    """
    if is_json(path):
        for _, value in _json_objects(path):
            return list(value)
    for _, fields in _split(path, delimiter):
        return fields
    raise _empty(path)


def is_json(path: str) -> bool:
    """Whether a file's name says that it holds JSON lines."""
    return path.removesuffix(".gz").endswith((".jsonl", ".json"))


def is_csv(path: str) -> bool:
    """Whether a file's name says that its fields may be quoted."""
    return path.removesuffix(".gz").endswith(".csv")


def describe_long(path: str, long: list[int]) -> str:
    """A warning of rows with long fields, with the first of their lines."""
    return (
        f"warning: {path}: {len(long):,} row{'s' * (len(long) != 1)} with a "
        f"field of more than {_LONG:,} characters (lines {first_few(long)}); "
        "is the end of a line or a quote missing?"
    )


def first_few(lines: list[int]) -> str:
    """Numbers of lines for a message."""
    return ", ".join(map(str, lines[:5])) + ", ..." * (len(lines) > 5)


def _empty(path: str) -> UserError:
    return UserError("is empty", path=path, expected="a row a line")


def _count(fields: int) -> str:
    return f"{fields} column{'s' * (fields != 1)}"


def _place(column: Column, names: list[str], path: str, line: int) -> int:
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
        line=line,
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
    for number, raw in _raw_lines(path):
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


def _raw_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of each line, with its end, also of `.gz` files."""
    try:
        with storage.open_file(path, "rb") as file:
            is_packed = path.endswith(".gz")
            text = gzip.GzipFile(fileobj=file) if is_packed else file
            yield from limits.lines(text, path, file if is_packed else None)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"cannot be read: {error}", path=path) from None


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


def _split(path: str, delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
    if is_csv(path):
        yield from _csv_rows(path, delimiter or ",")
        return
    for line, text in _lines(path):
        text = text.removesuffix("\n").removesuffix("\r")
        yield line, text.split(delimiter or "\t")


def _check_sizes(
    fields: list[str], path: str, line: int, long: list[int]
) -> None:
    longest = max(map(len, fields), default=0)
    if longest > _LONG:
        long.append(line)
    if longest > MAX_CHARACTERS:
        raise UserError(
            f"a field of {longest:,} characters",
            path=path,
            line=line,
            expected=f"at most {MAX_CHARACTERS:,}",
            fix="is the end of a line or a quote missing?",
        )


def _csv_rows(path: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV file; a quoted field may run over lines."""
    csv.field_size_limit(MAX_CHARACTERS)
    texts = (text for _, text in _lines(path))
    reader = csv.reader(texts, delimiter=delimiter, strict=True)
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
        if fields:  # the line is not blank
            yield first, fields
        first = reader.line_num + 1


def _json_rows(
    path: str, columns: list[Column], long: list[int]
) -> Iterator[Row]:
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
        texts = [x for x in values if isinstance(x, str)]
        _check_sizes(texts, path, line, long)
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
