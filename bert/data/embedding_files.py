"""Writes embeddings of texts as JSON lines of the original, or as arrays.

The embeddings of a partition are a part, arrays or lines. Parts are joined to
a file that pandas, DuckDB, Spark or faiss read.
"""

import functools
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bert.common import atomic, storage
from bert.common.formats import parquet_files
from bert.common.formats.json_files import Json, to_json

_ID = "id"
Join = Callable[[list[str], list[dict], str], None]  # see `joiner`


class Vectors(NamedTuple):
    """Embeddings of one text.

    Attributes:
        tokens: list of str. Its T tokens, including `[CLS]` and `[SEP]`.
        ids: list of int. Ids of the tokens.
        values: float32 [T, ...], or [...] for a pooled embedding. ... is
            [K, D] for K separate layers, [D] for mixed layers.
        kept: dict. `id` of the row, if it has one. Default: {}.
        error: dict or None. Error in the row, in the place of its values,
            which are not numbers; for tokens, T = 0. Default: None.
    """

    tokens: list[str]
    ids: list[int]
    values: NDArray
    kept: dict[str, Json] = {}
    error: dict | None = None


def json_line(
    number: int,
    vectors: Vectors,
    layers: Sequence[int] | None,
    pooled: bool,
) -> str:
    """Formats embeddings as a JSON line, as extract_features.py did.

    The key `linex_index` has the original's spelling.

    Args:
        number: int. Number of the row, from 0.
        vectors: Vectors. The embeddings.
        layers: sequence of int or None. Numbers of the K layers; None for mixed
            layers.
        pooled: bool. Whether each text has one embedding instead of one per
            token.
    """

    def described(values: np.ndarray) -> dict:
        # The original rounds to six digits.
        rounded = [
            [round(float(x), 6) for x in row] for row in np.atleast_2d(values)
        ]
        if layers is None:
            return {"values": rounded[0]}
        return {
            "layers": [
                {"index": index, "values": row}
                for index, row in zip(layers, rounded, strict=True)
            ]
        }

    line: dict = {"linex_index": number} | vectors.kept
    if vectors.error is not None:
        line |= vectors.error
    elif pooled:
        line |= described(vectors.values)
    else:
        line["features"] = [
            {"token": token, **described(values)}
            for token, values in zip(
                vectors.tokens, vectors.values, strict=True
            )
        ]
    return to_json(line) + "\n"


def write_arrays(
    rows: list[Vectors], pooled: bool, file: BinaryIO, first: int = 0
) -> None:
    """Writes a part: the embeddings of a partition.

    Args:
        rows: list of Vectors. Embeddings of at least one text.
        pooled: bool. See `json_line`.
        file: binary file. The part.
        first: int. Number of the first row. Default: 0.
    """
    values = [x.values for x in rows]
    keys = json.dumps([x.kept.get(_ID) for x in rows]).encode()
    np.savez(
        file,
        values=np.stack(values) if pooled else np.concatenate(values),
        input_ids=np.array([y for x in rows for y in x.ids], np.int32),
        lengths=np.array([len(x.ids) for x in rows]),
        keys=np.frombuffer(keys, np.uint8),
        first=first,
    )


def schema_of(rows: list[Vectors]) -> str:
    """Returns the type of the ids of a part, for `joiner` of "parquet"."""
    return parquet_files.schema_of([{_ID: x.kept.get(_ID)} for x in rows])


def joiner(kind: str, layers: Sequence[int] | None, pooled: bool) -> Join:
    """Returns a function that joins parts of arrays to a file.

    Args:
        kind: str. "npz", "npy" or "parquet".
        layers, pooled: See `json_line`.

    Returns:
        callable. Gets the files of parts, the counts of all parts of all
        outputs, with `schema_of` for "parquet", and the path of the file.
    """
    if kind == "npz":
        return functools.partial(_join_npz, layers, pooled)
    return {"npy": _join_npy, "parquet": _join_parquet}[kind]


def _join_npz(
    layers: Sequence[int] | None,
    pooled: bool,
    parts: list[str],
    counts: list[dict],
    path: str,
) -> None:
    """Writes arrays for `numpy.load`.

        values      float32 [N, ...] if pooled, else [tokens of all texts, ...]
        input_ids   int32 [tokens of all texts]; unless pooled
        row_splits  int64 [N + 1] boundaries of the texts; unless pooled
        layers      int64 [K]; unless mixed

    Values are buffered in an unnamed temporary file to limit memory.
    """
    ids, lengths, count, shape = [], [0], 0, (0,)
    with atomic.whole_file(path) as temporary:
        folder = os.path.dirname(temporary) or "."
        with tempfile.TemporaryFile(dir=folder) as raw:
            for part in _arrays(parts):
                values = part["values"]
                raw.write(values.astype("<f4").tobytes())
                count, shape = count + len(values), values.shape[1:]
                ids.append(part["input_ids"])
                lengths += part["lengths"].tolist()

            # Memory-mapped, as the values may be larger than memory.
            values = np.memmap(raw, "<f4", "r", shape=(count, *shape))
            arrays: dict[str, Any] = {"values": values}
            if layers is not None:
                arrays["layers"] = np.array(layers)
            if not pooled:
                arrays["input_ids"] = np.concatenate(ids)
                arrays["row_splits"] = np.cumsum(lengths)

            with storage.open_file(temporary, "wb") as file:
                np.savez(file, **arrays)


def _join_npy(parts: list[str], counts: list[dict], path: str) -> None:
    """Writes float32 [N, D], or [N, K, D] for several layers."""
    rows = sum(len(part["lengths"]) for part in _arrays(parts))
    with atomic.open_whole(path) as file:
        for number, part in enumerate(_arrays(parts)):
            values = _without_one_layer(part["values"]).astype("<f4")
            if number == 0:
                shape = (rows, *values.shape[1:])
                header = {
                    "descr": "<f4",
                    "fortran_order": False,
                    "shape": shape,
                }
                np.lib.format.write_array_header_1_0(file, header)
            file.write(values.tobytes())


def _join_parquet(parts: list[str], counts: list[dict], path: str) -> None:
    """Writes the columns `id` and `embedding`, a list of D float32.

    If no row of any part has an id, the ids are the numbers of the rows. The
    values of a row with an error are NaN: pyarrow cannot read a file with
    lists of a fixed size that are null.
    """
    pyarrow = parquet_files.load_pyarrow()
    (kind,) = parquet_files.common_schema(counts).types
    has_ids = kind != pyarrow.null()

    with atomic.open_whole(path) as file:
        writer = None
        for part in _arrays(parts):
            values = _without_one_layer(part["values"]).astype("<f4")
            embeddings = pyarrow.FixedSizeListArray.from_arrays(
                pyarrow.array(values.reshape(-1)),
                values.shape[1],
            )

            first, count = int(part["first"]), len(values)
            ids = pyarrow.array(range(first, first + count), pyarrow.int64())
            if has_ids:
                given = json.loads(part["keys"].tobytes())
                ids = parquet_files.column(given, kind)
            table = pyarrow.table({_ID: ids, "embedding": embeddings})

            writer = writer or pyarrow.parquet.ParquetWriter(file, table.schema)
            writer.write_table(table)
        if writer:
            writer.close()


def _without_one_layer(values: np.ndarray) -> np.ndarray:
    """Returns [N, D] of [N, 1, D]; other arrays are returned unchanged."""
    return values[:, 0] if values.ndim == 3 and values.shape[1] == 1 else values


def _arrays(parts: list[str]) -> Iterator[Any]:
    """Yields the arrays of each part, which are read when they are used."""
    for path in parts:
        with storage.open_file(path, "rb") as file:
            yield np.load(io.BytesIO(file.read()))
