"""Weights made to fit more words or longer rows. Pure functions on arrays."""

import numpy as np

_WORDS = "bert/embeddings/word_embeddings"
_OUTPUT_BIAS = "cls/predictions/output_bias"
_POSITIONS = "bert/embeddings/position_embeddings"


def extend_vocabulary(
    values: dict[str, np.ndarray], rows: list[int], pieces: list[list[int]]
) -> dict[str, np.ndarray]:
    """Gives new words rows of their own, each the mean of its old pieces.

    The output of the masked LM is the same table, so that it follows; its
    bias does too, where there is one.

    Args:
        values: original name -> array.
        rows: id of each new word: that of an unused row, or from V on.
        pieces: ids that each new word was split into before.

    Returns:
        name -> array, with max(V, last new id + 1) words.
    """
    changed = dict(values)
    for name in (_WORDS, _OUTPUT_BIAS):
        if name not in values:
            continue
        old = values[name]
        size = max([len(old), *(row + 1 for row in rows)])
        new = np.zeros((size, *old.shape[1:]), old.dtype)
        new[: len(old)] = old
        for row, ids in zip(rows, pieces, strict=True):
            new[row] = old[ids].mean(axis=0)
        changed[name] = new
    return changed


def extend_positions(
    values: dict[str, np.ndarray], length: int
) -> dict[str, np.ndarray]:
    """Repeats the position embeddings up to a greater length.

    Position i takes the vector of i modulo the old length (as Longformer
    starts, Beltagy et al. 2020, arXiv:2004.05150).

    Args:
        values: original name -> array.
        length: rows of the new table.

    Returns:
        name -> array.
    """
    old = values[_POSITIONS]
    index = np.arange(length) % len(old)
    return {**values, _POSITIONS: old[index]}
