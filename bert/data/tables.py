"""Reads tables of users: TSV, CSV, JSON lines and Parquet, by a schema.

    .tsv, any other extension    fields separated by tabs; quotes are literal
    .csv                         fields separated by commas, or as in a first
                                 line `sep=;`; quoted fields may span lines
    .jsonl, .json                an object per line; its keys are the columns
    .parquet                     see `formats.parquet_files`; lines are rows

Text may be compressed, with `.gz` after its extension. A byte order mark, the
CR of CRLF, spaces around the names of columns, and blank lines at the end are
skipped. In CSV files, all blank lines are skipped.

    schema = {"text": Column("body"), "label": Column(-1, optional=True)}
    Table.read("mails.csv", schema).rows
    # [{"line": 2, "text": "Dear all", "label": "ham"}, ...]
"""

import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, NamedTuple, overload

from bert.common import text_lines
from bert.common.errors import UserError
from bert.common.formats import endings, json_files, parquet_files
from bert.common.formats.json_files import Json
from bert.common.progress import log
from bert.data import table_rows

_TYPED = ("json", "parquet")  # formats with named columns
_LARGEST = 3.4e38  # of a float32
_DELIMITERS = (";", "\t", "|", ",")


def text(value: Json, field: str) -> str:
    """Converts a string or number to text.

    Args:
        value: The value of a cell; None if it is missing.
        field: str. Name of the field, for the message.

    Raises:
        UserError: The value is missing or has another type.
    """
    if isinstance(value, str):
        return value

    # In Python, True is an int.
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    shown = "null" if value is None else repr(value)
    raise UserError(f"the {field} is {shown}", expected="a string")


def optional_text(value: Json, field: str) -> str:
    """Converts a cell to text, "" if its value is missing; see `text`."""
    return "" if value is None else text(value, field)


def number(value: Json, field: str) -> float:
    """Converts a cell to a number; see `text`.

    Raises:
        UserError: The value is not a finite number of float32.
    """
    try:
        result = float(value)
        if isinstance(value, bool) or not abs(result) < _LARGEST:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise UserError(
            f"{field} {str(value)[:60]!r}", expected="a number"
        ) from None
    return result


class Column(NamedTuple):
    """The column of a field.

    Attributes:
        name: str or int. Name of the column, or its number from 0; -1 is the
            last.
        kind: callable or None. Converts a value and the name of the field, or
            raises a `ValueError`. None keeps values: str, and other types in
            JSON and Parquet. Default: `text`.
        optional: bool. Whether files may lack the column; their rows lack the
            field. Default: False.
        flag: str. Name of the flag with the column, for the message.
    """

    name: str | int
    kind: Callable[[Json, str], object] | None = text
    optional: bool = False
    flag: str = ""


TableSchema = Mapping[str, Column]  # field of a row -> its column


@dataclasses.dataclass(frozen=True)
class Table:
    """The rows of a file.

    Attributes:
        path: str. The file.
        rows: list. The rows, in order.
        cells: dict. The fields that the file has -> the names of columns that
            are given by number; "" for columns given by name; None in a file
            without names.
        sha256: str. SHA-256 hash of the file, in hex.
    """

    path: str
    rows: list
    cells: dict[str, str | None]
    sha256: str

    @classmethod
    def read(
        cls,
        path: str,
        schema: TableSchema | Callable[[list[str]], TableSchema],
        row: Callable[..., Any] = dict,
        skip_invalid: bool = False,
        **options: Any,
    ) -> "Table":
        """Reads a file.

        Args:
            path, schema, row, **options: See `TableReader`.
            skip_invalid: bool. Whether to skip and report invalid rows, as in
                some published files. Default: False.

        Raises:
            UserError: The file or a column does not exist, a row is invalid,
                or there are no rows.
        """
        sha256, rows, skipped = hashlib.sha256(), [], []
        reader = TableReader(path, schema, row, sha256=sha256, **options)
        for line, value in reader:
            if not isinstance(value, UserError):
                rows.append(value)
            elif skip_invalid:
                skipped.append(line)
            else:
                raise value

        if skipped:
            log(
                f"{path}: skipped {len(skipped)} rows of the published file "
                f"with too few or too many columns (lines {first_few(skipped)})"
            )
        if not rows:
            has_header = reader.header and endings.format_of(path) not in _TYPED
            expected = "one per line" + " after the header" * has_header
            raise UserError("no rows", path=path, expected=expected)
        return cls(path, rows, reader.cells, sha256.hexdigest())

    def check_header(self, values: Container[str], *fields: str) -> None:
        """Rejects a file with a row in line 1, where a header belongs.

        Args:
            values: container of str. Valid values of the fields, which are not
                names of columns; numbers are not, either.
            *fields: str. Fields whose columns may be given by number.

        Raises:
            UserError: The cell of a field in line 1 is such a value.
        """
        for field in (
            fields if endings.format_of(self.path) not in _TYPED else ()
        ):
            cell = self.cells.get(field) or ""
            digits = cell.lstrip("+-").replace(".", "", 1)
            if cell in values or digits.isdecimal():
                raise UserError(
                    f"{cell!r} in the column of the {field}",
                    path=self.path,
                    line=1,
                    expected="a header",
                    fix="add a line with the column names before the data",
                )


@dataclasses.dataclass
class TableReader:
    """Reads the rows of a file once, in bounded memory.

    Attributes:
        path: str. The file; its extension defines the format.
        schema: dict or callable. Field of a row -> its column. A function
            gets the names of all columns, and returns the schema.
        row: callable. Makes a row from the keyword arguments `line`, the
            number of its first line from 1, and the fields. It may raise a
            `ValueError`. Default: dict.
        header: bool. Whether line 1 has the names of the columns; ignored for
            JSON and Parquet. Default: True.
        delimiter: str or None. Separator of the fields of a .csv or .tsv
            file, see `table_rows.delimiter_of`. Default: as in the module's
            docstring.
        plain_field: str. A .txt file has a value of this field in each line,
            unless line 1 is the name of the column or has several fields.
            Default: "", a table.
        columns: dict. The fields that the file has -> their columns; complete
            after the first row.
        cells: dict. See `Table`; complete after the first row.
        sha256: hash or None. Updated with the bytes of the file. Default:
            None.
        span: Span or None. The rows to read, see `table_rows.divide`. Columns
            are still chosen by the first row of the file. Default: None, all
            rows.
        stream: binary file or None. The open file of the span, see
            `text_lines.blocks`. Default: None, open `path`.
    """

    path: str
    schema: Any
    row: Callable[..., Any] = dict
    header: bool = True
    delimiter: str | None = None
    plain_field: str = ""
    columns: dict[str, Column] = dataclasses.field(default_factory=dict)
    cells: dict[str, str | None] = dataclasses.field(default_factory=dict)
    sha256: Any = None
    span: text_lines.Span | None = None
    stream: Any = None

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Yields the line number of each row, and the row or its `UserError`.

        Raises:
            UserError: The file or a column does not exist, or the file cannot
                be parsed.
        """
        formats = {
            "json": self._json_values,
            "parquet": self._parquet_values,
        }
        kind = endings.format_of(self.path)
        read: Callable = formats.get(kind, self._text_values)
        for line, values in read():
            try:
                row = self._converted(line, values)
            except ValueError as error:
                row = UserError(f"{error}", path=self.path, line=line)
            yield line, row

    def _converted(self, line: int, values: list | UserError) -> Any:
        if isinstance(values, UserError):
            raise values
        fields: dict[str, object] = {"line": line}
        for (field, column), value in zip(self.columns.items(), values):
            if value != value:  # NaN, as pandas writes it, is a missing cell
                value = None
            fields[field] = column.kind(value, field) if column.kind else value
        return self.row(**fields)

    def _choose(self, names: list, line: int | None) -> list[int]:
        """Finds the columns; returns their numbers.

        Args:
            names: list. Names of all columns; None for columns without names.
            line: int or None. Line of the names, for messages.
        """
        names = [name and name.strip() for name in names]
        schema = self.schema(names) if callable(self.schema) else self.schema
        numbers = []
        for field, column in schema.items():
            number = _number_of(column, names, self.path, line)
            if number is not None:
                is_number = isinstance(column.name, int)
                self.cells[field] = names[number] if is_number else ""
                self.columns[field] = column
                numbers.append(number)
        return numbers

    def _text_values(self) -> Iterator[tuple[int, list | UserError]]:
        path, lines = self.path, table_rows.read_lines(self.path, self.sha256)
        tab, rows = table_rows.read(
            path, lines, table_rows.delimiter_of(self.delimiter)
        )
        line, first = next(rows, (1, []))

        # A .txt file with one field in line 1 is a table if that is its name.
        is_plain = self.plain_field and endings.format_of(path) == "text"
        if (
            is_plain
            and len(first) == 1
            and first[0] != self.schema[self.plain_field].name
        ):
            log(f"{path}: each line is a text")
            rows = ((number, [tab.join(fields)]) for number, fields in rows)
            self.schema, self.header = {self.plain_field: Column(0)}, False

        # Line 1: the header, perhaps "text, label", or the first row.
        names = first if self.header else [None] * len(first)
        numbers = self._choose(names, line)
        if self.span:
            _, rows = table_rows.read(path, self._lines(), tab)
        elif not self.header:
            rows = itertools.chain([(line, first)], rows)

        where = "the header" if self.header else "line 1"
        for line, fields in rows:
            if len(fields) == len(first):
                yield line, [fields[number] for number in numbers]
                continue
            error = UserError(
                _count(len(fields)),
                expected=f"{len(first)}, as {where} has",
                fix="is a tab or a comma missing, or one too many?",
            )
            yield line, error

    def _json_values(self) -> Iterator[tuple[int, list]]:
        # Columns are chosen by the first object; all objects must have them.
        rows = self._objects(table_rows.read_lines(self.path, self.sha256))
        line, first = next(rows)
        names = [*first]
        keys = [names[i] for i in self._choose(names, line)]
        if self.span:
            rows = self._objects(self._lines())
        else:
            rows = itertools.chain([(line, first)], rows)

        for line, value in rows:
            for key in keys:
                if key not in value:
                    _number_of(Column(key), [*value], self.path, line)
            yield line, [value[key] for key in keys]

    def _objects(
        self, lines: Iterator[tuple[int, str]]
    ) -> Iterator[tuple[int, dict]]:
        for line, content in lines:
            with json_files.reported(
                self.path, "an object per line", line=line
            ):
                value = json_files.decode(content, dict)
            yield line, value

    def _lines(self) -> Iterator[tuple[int, str]]:
        return table_rows.read_lines(
            self.path, stream=self.stream, span=self.span
        )

    def _parquet_values(self) -> Iterator[tuple[int, list]]:
        def choose(names: list[str]) -> list[str]:
            return [names[i] for i in self._choose(names, None)]

        return parquet_files.rows(self.path, choose, self.sha256, self.span)


@overload
def column_of(given: str) -> str | int: ...
@overload
def column_of(given: None) -> None: ...
def column_of(given):
    """Converts the value of a flag to a column; digits are its number."""
    if given is None or not given.removeprefix("-").isdecimal():
        return given and given.strip()
    return int(given)


def first_few(lines: list[int]) -> str:
    """Formats line numbers for a message."""
    shown = list(map(str, lines[:5]))
    if len(lines) > 5:
        shown.append("...")
    return ", ".join(shown)


def _count(fields: int) -> str:
    return "1 column" if fields == 1 else f"{fields} columns"


def _number_of(
    column: Column, names: list, path: str, line: int | None
) -> int | None:
    """Returns the number of a column; None if it is optional and missing."""
    name = column.name
    if isinstance(name, int) and -len(names) <= name < len(names):
        return name
    if isinstance(name, str) and names.count(name) == 1:
        return names.index(name)
    if column.optional and name not in names:
        return None

    # The message lists the columns and suggests a cause.
    expected = f"one of {_count(len(names))}"
    if None not in names:
        expected += f": {', '.join(name[:40] for name in names[:20])}"
    fix = "pass the name of a column, or its number, from 0"
    if column.flag:
        fix += f", as --{column.flag}"

    # A single column that contains a delimiter may be split by it.
    others = [x for x in _DELIMITERS if len(names) == 1 and x in str(names[0])]
    if others:
        shown = others[0].replace("\t", "\\t")
        fix = f"the fields seem to end at {shown!r}: pass --delimiter='{shown}'"
    raise UserError(
        f"{'duplicate' if name in names else 'no'} column {name!r}",
        path=path,
        line=line,
        expected=expected,
        fix=fix,
    )
