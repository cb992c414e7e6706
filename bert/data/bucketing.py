"""Sizes and lengths of batches; does not import TensorFlow."""

import numpy as np

from bert.common.errors import UserError


def check_size(batch_size: int) -> None:
    """Rejects a batch size that is not a positive integer."""
    if not isinstance(batch_size, int | np.integer) or batch_size < 1:
        raise UserError(f"batch_size={batch_size}", expected="1 or more")


def bucket_lengths(max_seq_length: int) -> list[int]:
    """Returns the lengths for padding: 8, 16, 24, ..., 128, 160, 192, ...

    They are multiples of 8 and, above 128, four lengths per octave. The model
    is compiled once for each length that occurs.

    Args:
        max_seq_length: int. S, the last length.
    """
    lengths, power = list(range(8, 128, 8)), 128
    while power < max_seq_length:
        lengths += range(power, 2 * power, power // 4)
        power *= 2
    return [x for x in lengths if x < max_seq_length] + [max_seq_length]


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
