"""Batches of sequences of similar lengths; does not import TensorFlow."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from bert.common.errors import UserError
from bert.data import features, sequences

EncodedExample = tuple[list[int], list[int]]  # ids and segment ids, unpadded
AnyExample = TypeVar("AnyExample")


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


def pad(examples: list[EncodedExample], length: int) -> dict[str, np.ndarray]:
    """Pads examples to the encoder's inputs, int32 [N, length] each."""
    columns = {
        features.INPUT_IDS: [ids for ids, _ in examples],
        features.INPUT_MASK: [[1] * len(ids) for ids, _ in examples],
        features.SEGMENT_IDS: [segments for _, segments in examples],
    }
    return {
        name: sequences.pad_rows(values, length, np.int32)
        for name, values in columns.items()
    }


def map_sorted_by_length(
    examples: Iterable[AnyExample],
    run: Callable[[dict[str, np.ndarray]], list],
    lengths: list[int],
    batch_size: int,
    window: int,
    pad: Callable[[list, int], dict[str, np.ndarray]] = pad,
    length_of: Callable[[Any], int] = lambda example: len(example[0]),
) -> Iterator:
    """Runs a function on batches of similar lengths; keeps the order.

    Args:
        examples: iterable. Examples of at most `lengths[-1]` tokens, read
            lazily.
        run: callable. Maps a batch of at most `batch_size` examples to a list
            with one result per example.
        lengths: list of int. Sequence lengths S of the batches, ascending.
        batch_size: int. Maximum number of examples in a batch.
        window: int. Number of examples that are sorted by length at a time.
        pad: callable. Maps a list of examples and S to a batch.
        length_of: callable. Maps an example to its number of tokens.

    Yields:
        The result of each example, in the order of `examples`.
    """
    examples = iter(examples)
    while held := list(itertools.islice(examples, window)):
        sizes = [length_of(example) for example in held]
        order = sorted(range(len(held)), key=sizes.__getitem__)
        results: list = [None] * len(held)

        # Each example uses the shortest length that fits.
        at = 0
        for length in lengths:
            start = at
            while at < len(order) and sizes[order[at]] <= length:
                at += 1

            for first in range(start, at, batch_size):
                chosen = order[first : min(first + batch_size, at)]
                batch = pad([held[i] for i in chosen], length)
                for index, result in zip(chosen, run(batch), strict=True):
                    results[index] = result
        yield from results
