"""Rows of many lengths to batches of few lengths, and back in order."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from data import features, sequences

Row = tuple[list[int], list[int]]  # ids and segment ids, not padded
AnyRow = TypeVar("AnyRow")


def bucket_lengths(max_seq_length: int) -> list[int]:
    """The lengths that rows are padded to: 8, 16, 24, ..., 128, 160, 192, ...

    Multiples of 8, from 128 on four an octave. Each that comes costs a second
    or two of a training run, to compile it.

    Args:
        max_seq_length: S, the last one.
    """
    lengths, power = list(range(8, 128, 8)), 128
    while power < max_seq_length:
        lengths += range(power, 2 * power, power // 4)
        power *= 2
    return [x for x in lengths if x < max_seq_length] + [max_seq_length]


def pad(rows: list[Row], length: int) -> dict[str, np.ndarray]:
    """Pads rows to the encoder's inputs, int32 [N, length] each."""
    columns = {
        features.INPUT_IDS: [ids for ids, _ in rows],
        features.INPUT_MASK: [[1] * len(ids) for ids, _ in rows],
        features.SEGMENT_IDS: [segments for _, segments in rows],
    }
    return {
        name: sequences.pad_rows(values, length, np.int32)
        for name, values in columns.items()
    }


def in_order(
    rows: Iterable[AnyRow],
    run: Callable[[dict[str, np.ndarray]], list],
    lengths: list[int],
    batch_size: int,
    window: int,
    pad: Callable[[list[AnyRow], int], dict[str, np.ndarray]] = pad,
    length_of: Callable[[AnyRow], int] = lambda row: len(row[0]),
) -> Iterator:
    """Runs rows in batches of like length; results come in their order.

    Args:
        rows: of at most `lengths[-1]` pieces; read as results are asked for.
        run: a batch of at most `batch_size` rows to one result for each.
        lengths: S of the batches, ascending.
        batch_size: rows of a batch.
        window: rows that are held and sorted by length at a time.
        pad: rows and S to a batch.
        length_of: pieces of a row.

    Yields:
        the result of each row.
    """
    rows = iter(rows)
    while held := list(itertools.islice(rows, window)):
        sizes = [length_of(row) for row in held]
        order = sorted(range(len(held)), key=sizes.__getitem__)
        results: list = [None] * len(held)
        at = 0
        for length in lengths:
            start = at
            while at < len(order) and sizes[order[at]] <= length:
                at += 1
            for first in range(start, at, batch_size):
                chosen = order[first : min(first + batch_size, at)]
                found = run(pad([held[i] for i in chosen], length))
                for index, result in zip(chosen, found, strict=True):
                    results[index] = result
        yield from results
