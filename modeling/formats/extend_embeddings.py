"""Extension of embeddings to more words or positions, on arrays."""

import numpy as np

_WORDS = "bert/embeddings/word_embeddings"
_OUTPUT_BIAS = "cls/predictions/output_bias"
_POSITIONS = "bert/embeddings/position_embeddings"


def extend_vocabulary(
    values: dict[str, np.ndarray], rows: list[int], parts: list[list[int]]
) -> dict[str, np.ndarray]:
    """Adds word embeddings, each the mean of the old tokens of the word.

    The masked-LM output shares this table; its bias, if there is one, is
    extended in the same way.

    Args:
        values: original name -> array.
        rows: id of each new word: an unused one, or V and above.
        parts: ids of the tokens that each new word was split into.

    Returns:
        original name -> array, with max(V, largest new id + 1) words.
    """
    changed = dict(values)
    for name in (_WORDS, _OUTPUT_BIAS):
        if name not in values:
            continue
        old = values[name]
        size = max([len(old), *(row + 1 for row in rows)])
        new = np.zeros((size, *old.shape[1:]), old.dtype)
        new[: len(old)] = old
        for row, ids in zip(rows, parts, strict=True):
            new[row] = old[ids].mean(axis=0)
        changed[name] = new
    return changed


def extend_positions(
    values: dict[str, np.ndarray], length: int
) -> dict[str, np.ndarray]:
    """Repeats the position embeddings up to a larger number of positions.

    Position i takes the vector of i modulo the old length (as Longformer
    starts, Beltagy et al. 2020, arXiv:2004.05150).

    Args:
        values: original name -> array.
        length: number of positions of the new table.

    Returns:
        original name -> array.
    """
    old = values[_POSITIONS]
    index = np.arange(length) % len(old)
    return {**values, _POSITIONS: old[index]}
