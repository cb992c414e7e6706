"""Sizes and lengths of batches; does not import TensorFlow."""

from typing import NamedTuple

import numpy as np

from bert.common.errors import UserError


def check_size(batch_size: int) -> None:
    """Rejects a batch size that is not a positive integer."""
    if not isinstance(batch_size, int | np.integer) or batch_size < 1:
        raise UserError(f"batch_size={batch_size}", expected="1 or more")


def bucket_lengths(max_seq_length: int) -> list[int]:
    """Returns the lengths for padding: 8, 16, 24, ..., 128, 160, 192, ...

    They are multiples of 8 and, above 128, four lengths per octave.

    Args:
        max_seq_length: int. S, the last length.
    """
    lengths, power = list(range(8, 128, 8)), 128
    while power < max_seq_length:
        lengths += range(power, 2 * power, power // 4)
        power *= 2
    return [x for x in lengths if x < max_seq_length] + [max_seq_length]


class BatchLengths(NamedTuple):
    """Lengths that batches are padded to.

    Attributes:
        allowed: list of int. The lengths, ascending.
        may_fuse: bool. Whether it is worth to compile fused programs for each
            of them, if the devices can.
    """

    allowed: list[int]
    may_fuse: bool


def fastest(
    lengths: list[int], longest: np.ndarray, cost: float, saving: float
) -> BatchLengths:
    """Returns the lengths that make a run fastest, with compiling.

    Each length is compiled when it first occurs, and saves padding whenever it
    occurs. The least sum of both is found by dynamic programming, from the
    shortest length to the longest:

        lengths      8  16  24  32  40  48
        batches      1  90  80   9   0   1
        chosen          16  24          48

    A short run compiles nothing, and has all lengths.

    Args:
        lengths: list of int. Lengths to choose from, ascending.
        longest: int [N]. Tokens of the longest example of each batch.
        cost: float. Number of tokens per example that take as long as
            compiling a length.
        saving: float. Fraction of the time of a token that compiled programs
            save.
    """
    used = lengths[: 1 + int(np.searchsorted(lengths, longest.max()))]
    counts = np.bincount(np.searchsorted(used, longest), minlength=len(used))
    # The least cost of the batches up to a length, and the chosen lengths.
    best: list[tuple[float, list[int]]] = [(0.0, [])]
    for last, length in enumerate(used):
        padding = (counts * (length - np.array(used)))[: last + 1]
        best.append(
            min(
                (known + cost + padding[first:].sum(), [*chosen, length])
                for first, (known, chosen) in enumerate(best)
            )
        )
    added, chosen = best[-1]
    if added > saving * (counts * np.array(used)).sum():
        return BatchLengths(lengths, may_fuse=False)
    return BatchLengths(chosen, may_fuse=True)


def xla_lengths(lengths: list[int]) -> list[int]:
    """Returns the lengths that are worth compiling: 32, 64, 128, ..., S.

    GPUs and TPUs compile the whole step for each length, which takes a minute
    or more for large networks.

    Args:
        lengths: list of int. Result of `bucket_lengths`.
    """
    return [
        x
        for x in lengths
        if x == lengths[-1] or (x >= 32 and x.bit_count() == 1)
    ]
