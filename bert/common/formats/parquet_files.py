"""Reads rows of Parquet files in bounded memory, with columns by name."""

import contextlib
from collections.abc import Callable, Iterator

from bert.common import errors, storage
from bert.common.errors import UserError

_ROWS = 1024  # rows that are decoded together


def rows(
    path: str,
    names: list[str] | Callable[[list[str]], list[str]],
    sha256=None,
) -> Iterator[tuple[int, list]]:
    """Yields the rows in bounded memory.

    Args:
        path: str. The file.
        names: list of str, or callable. Names of the columns, or a function
            that maps all column names of the file to the names to read.
        sha256: hash or None. Updated with the bytes of the file.

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
        number = 0
        for batch in table.iter_batches(_ROWS, columns=names):
            for row in zip(*(batch.column(x).to_pylist() for x in names)):
                number += 1
                yield number, list(row)


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
