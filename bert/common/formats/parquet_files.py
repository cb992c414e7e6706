"""Reads rows of Parquet files in bounded memory, with columns by name."""

import contextlib
import itertools
from collections.abc import Callable, Iterator

from bert.common import errors, storage
from bert.common.errors import UserError
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


def divide(path: str, num_bytes: float) -> Iterator[Span]:
    """Divides a file into ranges of rows, each within a row group.

    Args:
        path: str. The file.
        num_bytes: float. Approximate size of a range, without compression.

    Yields:
        Span. `start` and `stop` are numbers of rows from 0.

    Raises:
        UserError: See `rows`.
    """
    with _opened(path, None) as table:
        for group, (begin, end) in enumerate(_groups(table)):
            size = table.metadata.row_group(group).total_byte_size
            count = max(1, int(num_bytes * (end - begin) / max(1, size)))
            for start in range(begin, end, count):
                yield Span(path, start + 1, start, min(start + count, end))


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
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise errors.missing_packages("parquet", "pyarrow", path=path) from None
    if not storage.exists(path):
        raise UserError("no such file", path=path)

    # A damaged file may also claim more memory than there is.
    try:
        with storage.open_file(path, "rb") as file:
            if sha256:
                storage.update_hash(sha256, file)
            yield parquet.ParquetFile(file)
    except (
        ArrowException,
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
