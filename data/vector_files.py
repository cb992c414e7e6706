"""Writing vectors of texts as the original's JSON lines or npz."""

import contextlib
import os
import tempfile
from typing import NamedTuple

import numpy as np

from common import storage
from common.storage import to_json


class Vectors(NamedTuple):
    """Vectors of one text.

    Attributes:
        tokens: its T tokens, including `[CLS]` and `[SEP]`.
        ids: their ids.
        values: float32 [T, ...], or [...] for one vector of the text; ... is
            [K, D] for K separate layers, [D] for mixed layers.
    """

    tokens: list[str]
    ids: list[int]
    values: np.ndarray


class VectorWriter:
    """Writes the vectors of texts, one after another.

    The file receives its name when the `with` block ends without an error;
    else it is removed.

    Args:
        path: the file.
        output_format: `jsonl` or `npz`.
        layers: numbers of the K layers; None for mixed layers.
        pooled: whether there is one vector per text.

    Attributes:
        count: number of texts that were written.
    """

    def __init__(
        self,
        path: str,
        output_format: str,
        layers: list[int] | None,
        pooled: bool,
    ):
        self._path, self._outputs = path, contextlib.ExitStack()
        self._arguments = output_format, layers, pooled
        self.count = 0

    def __enter__(self):
        output_format, layers, pooled = self._arguments
        temporary = self._outputs.enter_context(storage.whole_file(self._path))
        kind = {"jsonl": _JsonLines, "npz": _Npz}
        self._file = kind[output_format](temporary, layers, pooled)
        self._outputs.push(lambda kind, *_: self._file.close(kind is None))
        return self

    def __exit__(self, *error):
        return self._outputs.__exit__(*error)

    def write(self, vectors: Vectors) -> None:
        """Writes the vectors of the next text."""
        self._file.write(self.count, vectors)
        self.count += 1


class _JsonLines:
    """JSON lines of google-research/bert `extract_features.py`.

    The key `linex_index` is the original's spelling.
    """

    def __init__(self, path: str, layers: list[int] | None, pooled: bool):
        self._layers, self._pooled = layers, pooled
        self._file = storage.open_text(path, "w", newline="\n")

    def write(self, number: int, vectors: Vectors) -> None:
        line: dict = {"linex_index": number}
        if self._pooled:
            line |= self._values(vectors.values)
        else:
            line["features"] = [
                {"token": token, **self._values(values)}
                for token, values in zip(
                    vectors.tokens, vectors.values, strict=True
                )
            ]
        self._file.write(to_json(line) + "\n")

    def close(self, complete: bool) -> None:
        self._file.close()

    def _values(self, values: np.ndarray) -> dict:
        rounded = [
            [round(float(x), 6) for x in row] for row in np.atleast_2d(values)
        ]
        if self._layers is None:
            return {"values": rounded[0]}
        return {
            "layers": [
                {"index": index, "values": row}
                for index, row in zip(self._layers, rounded, strict=True)
            ]
        }


class _Npz:
    """Arrays for `numpy.load`.

        values      float32 [N, ...] if pooled, else [tokens of all texts, ...]
        input_ids   int32 [tokens of all texts]; unless pooled
        row_splits  int64 [N + 1] boundaries of the texts; unless pooled
        layers      int64 [K]; unless mixed

    Values wait in a file without a name, so that memory is bounded.
    """

    def __init__(self, path: str, layers: list[int] | None, pooled: bool):
        self._path, self._layers, self._pooled = path, layers, pooled
        folder = os.path.dirname(path) or "."
        self._raw = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._shape: tuple[int, ...] = (0,)
        self._count = 0
        self._ids: list[np.ndarray] = []
        self._splits = [0]

    def write(self, number: int, vectors: Vectors) -> None:
        values = vectors.values[None] if self._pooled else vectors.values
        self._raw.write(values.astype("<f4").tobytes())
        self._shape = values.shape[1:]
        self._count += len(values)
        self._ids.append(np.array(vectors.ids, np.int32))
        self._splits.append(self._splits[-1] + len(vectors.ids))

    def close(self, complete: bool) -> None:
        with self._raw:
            if complete:
                self._write()

    def _write(self) -> None:
        shape = (self._count, *self._shape)
        arrays = {"values": np.memmap(self._raw, "<f4", "r", shape=shape)}
        if self._layers is not None:
            arrays["layers"] = np.array(self._layers)
        if not self._pooled:
            arrays["input_ids"] = np.concatenate(self._ids)
            arrays["row_splits"] = np.array(self._splits)
        with storage.open_file(self._path, "wb") as file:
            np.savez(file, **arrays)
