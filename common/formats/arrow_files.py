"""Rows of Parquet and Arrow files and of folders of Hugging Face `datasets`.

    name.parquet    Parquet
    name.arrow      Arrow, as a stream or a file
    folder/         of `Dataset.save_to_disk`; or of Parquet files only

Columns are found by name. The numbers of a `ClassLabel` column become its
names, and -1 becomes null. The files may be hostile: text is validated, and
no file can name another one outside of its folder.
"""

import contextlib
import glob
import json
import os
from collections.abc import Iterator

from common import extras, storage
from common.errors import UserError

ENDINGS = (".parquet", ".arrow")
_STATE, _SPLITS = "state.json", "dataset_dict.json"
_DESCRIPTIONS = (_STATE, "dataset_info.json", _SPLITS)
_ROWS = 1024  # of Parquet that are decoded together
_STREAM = b"\xff\xff\xff\xff"  # of an Arrow stream; a file starts with ARROW1


def is_arrow(path: str) -> bool:
    """Returns whether a path is a file or folder of one of the formats."""
    if path.endswith(ENDINGS):
        return True
    return storage.is_folder(path) and bool(_listed(path) or _splits(path))


def files_of(path: str) -> list[str]:
    """Returns the files that hold the rows of a path, in order.

    Args:
        path: any file, or a folder for which `is_arrow` is true.

    Raises:
        UserError: a folder holds several splits, or its `state.json` is
            damaged.
    """
    if not storage.is_folder(path):
        return [path]
    if splits := _splits(path):
        raise UserError(
            f"holds the splits {', '.join(splits)}",
            path=path,
            expected="one split",
            fix=f"pass {os.path.join(path, splits[0])}",
        )
    return _listed(path)


def without_descriptions(folder: str, names: list[str]) -> list[str]:
    """Drops the JSON files of a `datasets` folder from its file names."""
    if _SPLITS not in names and _STATE not in names:
        return names
    if _STATE in names:
        data = {os.path.basename(path) for path in _listed(folder)}
        names = [x for x in names if x in data or not x.endswith(".arrow")]
    return [name for name in names if name not in _DESCRIPTIONS]


def columns(path: str) -> list[str]:
    """Returns the names of the columns.

    Raises:
        UserError: the path does not exist or is damaged, or pyarrow is not
            installed.
    """
    with _opened(files_of(path)[0], None) as (schema, _):
        return list(schema.names)


def rows(path: str, names: list[str]) -> Iterator[tuple[int, list]]:
    """Yields the rows in bounded memory.

    Args:
        path: a file or folder.
        names: columns, each of which exists in `columns(path)`.

    Yields:
        number of the row, from 1, and its values: str, int, float, bool,
        None, or lists of these.

    Raises:
        UserError: as for `columns`.
    """
    number = 0
    for file in files_of(path):
        with _opened(file, names) as (schema, batches):
            classes = [_class_names(schema, name) for name in names]
            for batch in batches:
                values = [
                    _named(batch.column(name).to_pylist(), known, file)
                    for name, known in zip(names, classes)
                ]
                for row in zip(*values):
                    number += 1
                    yield number, list(row)


@contextlib.contextmanager
def _opened(path: str, names: list[str] | None) -> Iterator[tuple]:
    """Opens a file: its schema, and an iterator of its record batches.

    Errors of pyarrow in the body become a UserError.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise extras.error("parquet", "pyarrow", path=path) from None
    if not storage.exists(path):
        raise UserError("no such file", path=path)
    try:
        with storage.open_file(path, "rb") as file:
            if path.endswith(".parquet"):
                table = parquet.ParquetFile(file)
                schema = table.schema_arrow
                _check(schema, names, path)
                yield schema, table.iter_batches(_ROWS, columns=names)
                return
            is_stream = file.read(len(_STREAM)) == _STREAM
            file.seek(0)
            if is_stream:
                table = batches = pyarrow.ipc.open_stream(file)
            else:
                table = pyarrow.ipc.open_file(file)
                numbers = range(table.num_record_batches)
                batches = map(table.get_batch, numbers)
            _check(table.schema, names, path)
            yield table.schema, map(_validated, batches)
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


def _validated(batch):
    """Returns a record batch whose offsets and text are valid."""
    batch.validate(full=True)
    return batch


def _check(schema, names: list[str] | None, path: str) -> None:
    """Checks that columns exist once; the files of a folder may differ."""
    for name in names or ():
        if schema.names.count(name) != 1:
            raise UserError(
                f"no column {name!r}",
                path=path,
                expected=f"one of {', '.join(schema.names[:20])}",
            )


def _class_names(schema, name: str) -> list[str] | None:
    """Returns the names of a `ClassLabel` column, or None."""
    try:
        described = json.loads((schema.metadata or {})[b"huggingface"])
        feature = described["info"]["features"][name]
        known = feature["names"]
    except (KeyError, TypeError, ValueError):
        return None
    is_list = isinstance(known, list) and all(isinstance(x, str) for x in known)
    return known if feature.get("_type") == "ClassLabel" and is_list else None


def _named(values: list, known: list[str] | None, path: str) -> list:
    """Replaces the numbers of classes by their names."""
    if known is None:
        return values
    names = {**dict(enumerate(known)), -1: None, None: None}
    wrong = [
        x for x in values if not isinstance(x, int | None) or x not in names
    ]
    if wrong:
        raise UserError(
            f"label {wrong[0]!r}",
            path=path,
            expected=f"a number below {len(known)}, of {', '.join(known[:5])}",
        )
    return [names[x] for x in values]


def _splits(folder: str) -> list[str]:
    """Returns the splits of a folder of `DatasetDict.save_to_disk`."""
    path = os.path.join(folder, _SPLITS)
    found = _read(path).get("splits") if storage.exists(path) else []
    if not isinstance(found, list):
        raise UserError("no list of splits", path=path)
    return list(map(str, found))


def _listed(folder: str) -> list[str]:
    """Returns the files of a folder's rows; [] if it is of no format."""
    path = os.path.join(folder, _STATE)
    if not storage.exists(path):
        escaped = folder if storage.is_remote(folder) else glob.escape(folder)
        every = storage.glob(f"{escaped}/*")
        found = [x for x in every if x.endswith(ENDINGS[0])]
        return found if found == every else []
    try:
        files = [x["filename"] for x in _read(path)["_data_files"]]
    except (KeyError, TypeError):
        files = []
    if not files or any(
        not isinstance(x, str) or os.path.basename(x) != x for x in files
    ):
        raise UserError(
            "no list of the data files", path=path, expected="_data_files"
        )
    return [os.path.join(folder, x) for x in files]


def _read(path: str) -> dict:
    try:
        with storage.open_file(path, "rb") as file:
            values = json.loads(file.read())
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"not JSON: {error}", path=path) from None
    if not isinstance(values, dict):
        raise UserError("not a JSON object", path=path)
    return values
