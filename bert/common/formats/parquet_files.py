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
        _, _, start, stop = span or Span(path, stop=table.metadata.num_rows)
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


def schema_of(lines: bytes) -> str:
    """Returns the columns of JSON lines, as base64 of a schema.

    Args:
        lines: bytes. An object per line.

    Raises:
        UserError: The values of a column have different types.
    """
    rows = _objects(io.BytesIO(lines))
    names = dict.fromkeys(name for row in rows for name in row)
    with _one_type():
        table = load_pyarrow().Table.from_pylist(
            [dict.fromkeys(names) | row for row in rows]
        )
    return base64.b64encode(table.schema.serialize()).decode()


def join_lines(parts: list[str], counts: list[dict], path: str) -> None:
    """Writes the objects of JSON lines as rows of a file.

    Args:
        parts: list of str. Files of JSON lines.
        counts: list of dict. `schema`, of `schema_of`, of all parts of all
            outputs: a column may be missing or have no value in some parts.
        path: str. The file to write, with a row group for each part.

    Raises:
        UserError: The values of a column have different types.
    """
    pyarrow = load_pyarrow()
    schemas = dict.fromkeys(x["schema"] for x in counts)
    with _one_type():
        schema = pyarrow.unify_schemas(
            [
                pyarrow.ipc.read_schema(pyarrow.py_buffer(base64.b64decode(x)))
                for x in schemas
            ],
            promote_options="permissive",
        )
        with (
            atomic.open_whole(path) as file,
            pyarrow.parquet.ParquetWriter(file, schema) as writer,
        ):
            for part in parts:
                with storage.open_file(part, "rb") as lines:
                    rows = _objects(lines)
                table = pyarrow.Table.from_pylist(rows, schema)
                writer.write_table(table)


def _objects(lines: Iterable[bytes]) -> list[dict]:
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


@contextlib.contextmanager
def _one_type() -> Iterator[None]:
    try:
        yield
    except load_pyarrow().ArrowException as error:
        raise UserError(
            f"not a table: {str(error)[:200]}",
            expected="values of one type in each column",
            fix="pass an --output_file in .jsonl",
        ) from None


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
