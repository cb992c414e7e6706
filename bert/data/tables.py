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
    read("mails.csv", schema).rows
    # [{"line": 2, "text": "Dear all", "label": "ham"}, ...]
"""

import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, Self, TypeVar, overload

from bert.common import text_lines
from bert.common.errors import UserError
from bert.common.formats import endings, json_files, parquet_files
from bert.common.formats.json_files import Json
from bert.common.progress import log
from bert.data import table_rows

_TYPED = ("json", "parquet")  # formats with named columns
_LARGEST = 3.4e38  # of a float32
_DELIMITERS = (";", "\t", "|", ",")

Row = TypeVar("Row")  # of a file, such as an example with its label
Lines = Iterator[tuple[int, str]]  # number and text of each line


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
        convert: callable or None. Converts a value and the name of the field,
            or raises a `ValueError`. None keeps values: str, and other types
            in JSON and Parquet. Default: `text`.
        optional: bool. Whether files may lack the column; their rows lack the
            field. Default: False.
        flag: str. Name of the flag with the column, for the message.
    """

    name: str | int
    convert: Callable[[Json, str], object] | None = text
    optional: bool = False
    flag: str = ""


TableSchema = Mapping[str, Column]  # field of a row -> its column


@dataclasses.dataclass(frozen=True, eq=False)
class InputFile(Generic[Row]):
    """A file of a run, with its rows.

    Attributes:
        path: str. The file.
        rows: list. Its rows, or the examples made from them, in order.
        sha256: str. SHA-256 hash of the file, in hex; "" if it is not needed.
        cells: dict. Fields that a table has -> the names of columns that are
            given by number; "" for columns given by name; None in a file
            without names. Default: {}, not a table.
        subset: str. Name of a second file of the same kind, such as
            "mismatched". Default: "".
        part: str. Description of the rows, if they are not all rows of the
            file. Default: "".
    """

    path: str
    rows: list[Row] = dataclasses.field(default_factory=list)
    sha256: str = ""
    cells: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    subset: str = ""
    part: str = ""

    def with_rows(self, rows: list[Row]) -> Self:
        """Returns the file with other rows."""
        return dataclasses.replace(self, rows=rows)


def read(
    path: str,
    schema: TableSchema | Callable[[list[str]], TableSchema],
    row: Callable[..., Any] = dict,
    skip_invalid: bool = False,
    header: bool = True,
    **options: Any,
) -> InputFile:
    """Reads a table.

    Args:
        path, schema, row, header, **options: See `scan`.
        skip_invalid: bool. Whether to skip and report invalid rows, as in
            some published files. Default: False.

    Raises:
        UserError: The file or a column does not exist, a row is invalid, or
            there are no rows.
    """
    sha256, kept, skipped = hashlib.sha256(), [], []
    cells, rows = scan(path, schema, row, header, sha256=sha256, **options)
    for line, value in rows:
        if not isinstance(value, UserError):
            kept.append(value)
        elif skip_invalid:
            skipped.append(line)
        else:
            raise value

    if skipped:
        log(
            f"{path}: skipped {len(skipped)} rows of the published file "
            f"with too few or too many columns (lines {first_few(skipped)})"
        )
    if not kept:
        has_header = header and endings.format_of(path) not in _TYPED
        expected = "one per line" + " after the header" * has_header
        raise UserError("no rows", path=path, expected=expected)
    return InputFile(path, kept, sha256.hexdigest(), cells)


def scan(
    path: str,
    schema: TableSchema | Callable[[list[str]], TableSchema],
    row: Callable[..., Any] = dict,
    header: bool = True,
    delimiter: str | None = None,
    plain_field: str = "",
    sha256: Any = None,
    span: text_lines.Span | None = None,
    stream: Any = None,
) -> tuple[dict[str, str | None], Iterator[tuple[int, Any]]]:
    """Finds the columns of a table, and reads its rows once, lazily.

    Args:
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
        sha256: hash or None. Updated with the bytes of the file. Default:
            None.
        span: Span or None. The rows to read, see `table_rows.divide`. Columns
            are still chosen by the first row of the file. Default: None, all
            rows.
        stream: binary file or None. The open file of the span, see
            `text_lines.blocks`. Default: None, open `path`.

    Returns:
        the cells of the fields, see `InputFile`; and the line number of each
        row, with the row or its `UserError`.

    Raises:
        UserError: The file or a column does not exist, or the file cannot be
            parsed.
    """
    columns, cells = dict[str, Column](), dict[str, str | None]()

    def choose(
        names: list, line: int | None = None, is_plain: bool = False
    ) -> list[int]:
        """Finds the columns; returns their numbers."""
        names = [name and name.strip() for name in names]
        of_fields = schema(names) if callable(schema) else schema
        if is_plain:
            of_fields = {plain_field: Column(0)}
        numbers = []
        for field, column in of_fields.items():
            number = _number_of(column, names, path, line)
            if number is not None:
                is_number = isinstance(column.name, int)
                cells[field] = names[number] if is_number else ""
                columns[field] = column
                numbers.append(number)
        return numbers

    file_format, rest = endings.format_of(path), None
    lines = table_rows.read_lines(path, sha256)
    if span:
        rest = table_rows.read_lines(path, stream=stream, span=span)
    if file_format == "parquet":
        values = parquet_files.rows(
            path, lambda names: [names[i] for i in choose(names)], sha256, span
        )
    elif file_format == "json":
        values = _json_values(path, choose, lines, rest)
    else:
        plain = None
        if plain_field and file_format == "text" and not callable(schema):
            plain = schema[plain_field].name
        values = _text_values(
            path, choose, lines, rest, header, delimiter, plain
        )

    # The columns are known with the first row.
    values = itertools.chain([*itertools.islice(values, 1)], values)
    return cells, _converted(path, columns, row, values)


def _converted(
    path: str,
    columns: Mapping[str, Column],
    row: Callable[..., Any],
    rows: Iterable[tuple[int, list | UserError]],
) -> Iterator[tuple[int, Any]]:
    """Converts the values of rows; see `scan`."""
    for line, values in rows:
        try:
            if isinstance(values, UserError):
                raise values
            fields: dict[str, object] = {"line": line}
            for (field, column), value in zip(columns.items(), values):
                if value != value:  # a missing cell is NaN, as pandas writes it
                    value = None
                convert = column.convert
                fields[field] = convert(value, field) if convert else value
            yield line, row(**fields)
        except ValueError as error:
            yield line, UserError(f"{error}", path=path, line=line)


def _text_values(
    path: str,
    choose: Callable[..., list[int]],
    lines: Lines,
    rest: Lines | None,
    header: bool,
    delimiter: str | None,
    plain: str | int | None,
) -> Iterator[tuple[int, list | UserError]]:
    """Yields the values of the rows of a .csv or .tsv file.

    Args:
        path, header, delimiter: See `scan`.
        choose: function. Names of all columns, and their line -> the numbers
            of the columns to read.
        lines: iterator. All lines of the file.
        rest: iterator or None. Lines of the rows to read. Default: None, all.
        plain: str, int or None. Name of the column of a file which may be a
            text per line.
    """
    tab, rows = table_rows.read(path, lines, table_rows.delimiter_of(delimiter))
    line, first = next(rows, (1, []))

    # A .txt file with one field in line 1 is a table if that is its name.
    is_plain = plain is not None and len(first) == 1 and first[0] != plain
    if is_plain:
        log(f"{path}: each line is a text")
        rows = ((number, [tab.join(fields)]) for number, fields in rows)
        header = False

    # Line 1: the header, perhaps "text, label", or the first row.
    names = first if header else [None] * len(first)
    numbers = choose(names, line, is_plain)
    if rest:
        _, rows = table_rows.read(path, rest, tab)
    elif not header:
        rows = itertools.chain([(line, first)], rows)

    where = "the header" if header else "line 1"
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


def _json_values(
    path: str,
    choose: Callable[..., list[int]],
    lines: Lines,
    rest: Lines | None,
) -> Iterator[tuple[int, list]]:
    """Yields the values of the objects of a file; see `_text_values`."""
    # Columns are chosen by the first object; all objects must have them.
    rows = _objects(path, lines)
    line, first = next(rows)
    names = [*first]
    keys = [names[i] for i in choose(names, line)]
    if rest:
        rows = _objects(path, rest)
    else:
        rows = itertools.chain([(line, first)], rows)

    for line, value in rows:
        for key in keys:
            if key not in value:
                _number_of(Column(key), [*value], path, line)
        yield line, [value[key] for key in keys]


def _objects(path: str, lines: Lines) -> Iterator[tuple[int, dict]]:
    for line, content in lines:
        with json_files.reported(path, "an object per line", line=line):
            value = json_files.decode(content, dict)
        yield line, value


def check_header(file: InputFile, values: Container[str], *fields: str) -> None:
    """Rejects a table with a row in line 1, where a header belongs.

    Args:
        file: InputFile. The table.
        values: container of str. Valid values of the fields, which are not
            names of columns; numbers are not, either.
        *fields: str. Fields whose columns may be given by number.

    Raises:
        UserError: The cell of a field in line 1 is such a value.
    """
    for field in fields if endings.format_of(file.path) not in _TYPED else ():
        cell = file.cells.get(field) or ""
        digits = cell.lstrip("+-").replace(".", "", 1)
        if cell in values or digits.isdecimal():
            raise UserError(
                f"{cell!r} in the column of the {field}",
                path=file.path,
                line=1,
                expected="a header",
                fix="add a line with the column names before the data",
            )


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
