"""Writing vectors of texts as the original's JSON lines or npz.

A file receives its name when its `with` block ends without an error; else it
is removed.
"""

import contextlib
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bert.common import atomic, storage
from bert.common.formats.json_files import to_json


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


Write = Callable[[Vectors], None]  # writes the vectors of the next text


@contextlib.contextmanager
def json_lines(
    path: str, layers: list[int] | None, pooled: bool
) -> Iterator[Write]:
    """Context that writes JSON lines of the original's extract_features.py.

    The key `linex_index` is the original's spelling.

    Args:
        path: the file.
        layers: numbers of the K layers; None for mixed layers.
        pooled: whether there is one vector per text.
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

    # Under a temporary name: no reader sees half a file.
    with (
        atomic.whole_file(path) as temporary,
        storage.open_text(temporary, "w", newline="\n") as file,
    ):
        yield write


@contextlib.contextmanager
def npz(path: str, layers: list[int] | None, pooled: bool) -> Iterator[Write]:
    """Context that writes arrays for `numpy.load`.

        values      float32 [N, ...] if pooled, else [tokens of all texts, ...]
        input_ids   int32 [tokens of all texts]; unless pooled
        row_splits  int64 [N + 1] boundaries of the texts; unless pooled
        layers      int64 [K]; unless mixed

    Values wait in a file without a name, so that memory is bounded.

    Args:
        path, layers, pooled: as for `json_lines`.
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

            # Mapped, not read, as they may be larger than memory.
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
