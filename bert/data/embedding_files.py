"""Writes embeddings of texts as JSON lines of the original, or as npz.

A file appears when its `with` block ends without an error.
"""

import contextlib
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert.common import atomic, storage
from bert.common.formats.json_files import to_json


class Vectors(NamedTuple):
    """Embeddings of one text.

    Attributes:
        tokens: list of str. Its T tokens, including `[CLS]` and `[SEP]`.
        ids: list of int. Ids of the tokens.
        values: float32 [T, ...], or [...] for a pooled embedding. ... is
            [K, D] for K separate layers, [D] for mixed layers.
    """

    tokens: list[str]
    ids: list[int]
    values: np.ndarray


Write = Callable[[Vectors], None]  # writes the embeddings of the next text


@contextlib.contextmanager
def json_lines(
    path: str, layers: Sequence[int] | None, pooled: bool
) -> Iterator[Write]:
    """Context manager that writes JSON lines as extract_features.py did.

    The key `linex_index` has the original's spelling.

    Args:
        path: str. The file.
        layers: sequence of int or None. Numbers of the K layers; None for mixed
            layers.
        pooled: bool. Whether each text has one embedding instead of one per
            token.
    """
    numbers = itertools.count()

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

    def write(vectors: Vectors) -> None:
        line: dict = {"linex_index": next(numbers)}
        if pooled:
            line |= described(vectors.values)
        else:
            line["features"] = [
                {"token": token, **described(values)}
                for token, values in zip(
                    vectors.tokens, vectors.values, strict=True
                )
            ]
        file.write(to_json(line) + "\n")

    # The temporary name prevents others from reading an unfinished file.
    with (
        atomic.whole_file(path) as temporary,
        storage.open_text(temporary, "w", newline="\n") as file,
    ):
        yield write


@contextlib.contextmanager
def npz(
    path: str, layers: Sequence[int] | None, pooled: bool
) -> Iterator[Write]:
    """Context manager that writes arrays for `numpy.load`.

        values      float32 [N, ...] if pooled, else [tokens of all texts, ...]
        input_ids   int32 [tokens of all texts]; unless pooled
        row_splits  int64 [N + 1] boundaries of the texts; unless pooled
        layers      int64 [K]; unless mixed

    Values are buffered in an unnamed temporary file to limit memory.

    Args:
        path, layers, pooled: See `json_lines`.
    """
    ids, count, shape = [], 0, (0,)

    def write(vectors: Vectors) -> None:
        nonlocal count, shape
        values = vectors.values[None] if pooled else vectors.values
        raw.write(values.astype("<f4").tobytes())
        count, shape = count + len(values), values.shape[1:]
        ids.append(np.array(vectors.ids, np.int32))

    with atomic.whole_file(path) as temporary:
        folder = os.path.dirname(temporary) or "."
        with tempfile.TemporaryFile(dir=folder) as raw:
            yield write

            # Memory-mapped, as the values may be larger than memory.
            values = np.memmap(raw, "<f4", "r", shape=(count, *shape))
            arrays: dict[str, Any] = {"values": values}
            if layers is not None:
                arrays["layers"] = np.array(layers)
            if not pooled:
                arrays["input_ids"] = np.concatenate(ids)
                arrays["row_splits"] = np.cumsum([0, *map(len, ids)])

            with storage.open_file(temporary, "wb") as file:
                np.savez(file, **arrays)


FORMATS = {"jsonl": json_lines, "npz": npz}
