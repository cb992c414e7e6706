"""Reads rows of Parquet files in bounded memory, with columns by name."""

import base64
import contextlib
import io
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bert.common import atomic, errors, storage
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.common.text_lines import Span

SCHEMA = "schema"  # key of the counts of a part, see `schema_of`
_ROWS = 1024  # rows that are decoded together


def rows(
    path: str,
    names: list[str] | Callable[[list[str]], list[str]],
    sha256=None,
    span: Span | None = None,
) -> Iterator[tuple[int, list]]:
    """Yields the rows in bounded memory.

    Args:
        path: str. The file.
        names: list of str, or callable. Names of the columns, or a function
            that maps all column names of the file to the names to read.
        sha256: hash or None. Updated with the bytes of the file.
        span: Span or None. The rows to read, see `divide`. Default: None, all
            rows.

    Yields:
        (number, values). Number of the row, from 1, and its values: str, int,
        float, bool, None, or lists of these.

    Raises:
        UserError: The file is missing or damaged, has no such column, or
            pyarrow is not installed.
    """
    with _opened(path, sha256) as table:
        every = table.schema_arrow.names
        names = names(every) if callable(names) else names

        # A name that occurs twice would be ambiguous.
        for name in names:
            if every.count(name) != 1:
                raise UserError(
                    f"no column {name!r}",
                    path=path,
                    expected=f"one of {', '.join(every[:20])}",
                )

        # Only the row groups that overlap with the span are read.
        _, _, start, stop = span or Span(path)
        stop = table.metadata.num_rows if stop is None else stop
        groups = {
            group: begin
            for group, (begin, end) in enumerate(_groups(table))
            if begin < stop and start < end
        }

        first = min(groups.values(), default=0)
        for batch in table.iter_batches(_ROWS, [*groups], names):
            read = batch[max(0, start - first) : max(0, stop - first)]
            columns = (read.column(x).to_pylist() for x in names)
            for number, row in enumerate(zip(*columns), max(start, first) + 1):
                yield number, list(row)
            first += len(batch)


def divide(path: str, num_bytes: float) -> Iterator[tuple[Span, int]]:
    """Divides a file into ranges of rows, each within a row group.

    Args:
        path: str. The file.
        num_bytes: float. Approximate size of a range, without compression.

    Yields:
        (Span, int). A range, whose `start` and `stop` are numbers of rows from
        0, and its number of rows.

    Raises:
        UserError: See `rows`.
    """
    with _opened(path, None) as table:
        for group, (begin, end) in enumerate(_groups(table)):
            size = table.metadata.row_group(group).total_byte_size
            count = max(1, int(num_bytes * (end - begin) / max(1, size)))
            for start in range(begin, end, count):
                stop = min(start + count, end)
                yield Span(path, start + 1, start, stop), stop - start


def schema_of(rows: list[dict]) -> str:
    """Returns the columns of a part's rows, for `common_schema`.

    Args:
        rows: list of dict. JSON objects.

    Returns:
        str. Base64 of a schema. Its metadata are the ranges of the columns of
        integers.
    """
    pyarrow = load_pyarrow()
    fields = []
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [x for x in (row.get(name) for row in rows) if x is not None]
        if {*map(type, values)} == {int}:
            limits = {"least": str(min(values)), "most": str(max(values))}
            fields.append(pyarrow.field(name, pyarrow.int64(), metadata=limits))
            continue
        try:
            kind = pyarrow.array(values).type
        except (pyarrow.ArrowException, OverflowError):
            kind = pyarrow.string()
        fields.append(pyarrow.field(name, kind))
    schema = pyarrow.schema(fields)
    return base64.b64encode(schema.serialize()).decode()


def common_schema(counts: list[dict]) -> Any:
    """Returns the columns of all parts, with types that hold all values.

    Args:
        counts: list of dict. `SCHEMA`, of `schema_of`, of all parts of all
            outputs: a column may be missing or have no value in some parts.

    Returns:
        pyarrow.Schema. A column whose values have no common type has strings,
        see `column`.
    """
    pyarrow = load_pyarrow()
    named: dict[str, list] = {}
    for text in dict.fromkeys(x[SCHEMA] for x in counts):
        buffer = pyarrow.py_buffer(base64.b64decode(text))
        for field in pyarrow.ipc.read_schema(buffer):
            named.setdefault(field.name, []).append(field)
    return pyarrow.schema((x, _common_type(named[x])) for x in named)


def _common_type(fields: list) -> Any:
    """Returns the type of a column that has these types in parts."""
    pyarrow = load_pyarrow()
    limits = [int(x) for y in fields for x in (y.metadata or {}).values()]
    least, most = min(limits, default=0), max(limits, default=0)
    try:
        schemas = [pyarrow.schema([x.remove_metadata()]) for x in fields]
        schema = pyarrow.unify_schemas(schemas, promote_options="permissive")
        kind = schema.types[0]
        if kind == pyarrow.int64() and most >= 2**63:
            kind = pyarrow.uint64()
        exact = {  # type -> integers that it holds
            pyarrow.int64(): (-(2**63), 2**63 - 1),
            pyarrow.uint64(): (0, 2**64 - 1),
            pyarrow.float64(): (-(2**53), 2**53),
        }
        first, last = exact.get(kind, (least, most))
        if not first <= least <= most <= last:
            return pyarrow.string()

        # Parquet has no objects without keys.
        columns = pyarrow.schema([(schema.names[0], kind)])
        pyarrow.parquet.ParquetWriter(io.BytesIO(), columns).close()
        return kind
    except pyarrow.ArrowException:
        return pyarrow.string()


def column(values: list, kind: Any) -> Any:
    """Makes a column.

    Args:
        values: list. JSON values. In a column of strings, values of other
            types are written as JSON.
        kind: pyarrow.DataType. The type, of `common_schema`.

    Returns:
        pyarrow.Array. The column.
    """
    pyarrow = load_pyarrow()
    if kind == pyarrow.string():
        values = [
            x
            if isinstance(x, str | None)
            else json_files.to_json(x, ensure_ascii=False)
            for x in values
        ]
    return pyarrow.array(values, kind)


def join_lines(parts: list[str], counts: list[dict], path: str) -> None:
    """Writes the objects of JSON lines as rows of a file.

    Args:
        parts: list of str. Files of JSON lines.
        counts: list of dict. See `common_schema`.
        path: str. The file to write, with a row group for each part.
    """
    pyarrow, schema = load_pyarrow(), common_schema(counts)
    with (
        atomic.open_whole(path) as file,
        pyarrow.parquet.ParquetWriter(file, schema) as writer,
    ):
        for part in parts:
            with storage.open_file(part, "rb") as lines:
                rows = objects(lines)
            columns = [
                column([row.get(x.name) for row in rows], x.type)
                for x in schema
            ]
            writer.write_table(pyarrow.table(columns, schema=schema))


def objects(lines: Iterable[bytes]) -> list[dict]:
    """Returns the objects of JSON lines."""
    return [json_files.decode(line, dict) for line in lines]


def load_pyarrow(path: str | None = None) -> Any:
    """Imports pyarrow, with its modules `ipc` and `parquet`.

    Args:
        path: str or None. The file that needs it, for the message. Default:
            None.

    Raises:
        UserError: It is not installed.
    """
    try:
        import pyarrow.parquet
    except ImportError:
        raise errors.missing_packages("parquet", "pyarrow", path=path) from None
    return pyarrow


def _groups(table) -> list[tuple[int, int]]:
    """Returns the first row of each row group, and the row after its last."""
    sizes = [
        table.metadata.row_group(i).num_rows
        for i in range(table.num_row_groups)
    ]
    ends = [*itertools.accumulate(sizes, initial=0)]
    return [*itertools.pairwise(ends)]


@contextlib.contextmanager
def _opened(path: str, sha256) -> Iterator:
    """Opens a `ParquetFile`; errors of pyarrow become a UserError."""
    pyarrow = load_pyarrow(path)
    if not storage.exists(path):
        raise UserError("no such file", path=path)

    # A damaged file may also claim more memory than there is.
    try:
        with storage.open_file(path, "rb") as file:
            if sha256:
                storage.update_hash(sha256, file)
            yield pyarrow.parquet.ParquetFile(file)
    except (
        pyarrow.ArrowException,
        MemoryError,
        OSError,
        UnicodeDecodeError,
    ) as error:
        raise UserError(
            f"cannot be read: {str(error)[:200] or 'out of memory'}",
            path=path,
            fix=None
            if isinstance(error, PermissionError)
            else "the file is damaged or of another format: copy it again",
        ) from None
