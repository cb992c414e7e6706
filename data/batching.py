"""Rows of many lengths to batches of few lengths, and back in order."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
import tensorflow as tf

from data import features, sequences
from data.records import example_files, pipelines

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


_WINDOW = 64  # batches that are sorted together


def training_batches(
    rows: example_files.Rows,
    lengths: list[int],
    batch_size: int,
    seed: int,
    step: int,
) -> tf.data.Dataset:
    """Batches without end, a function of the seed and the step.

    Args:
        rows: what is trained on.
        lengths: S of the batches, ascending; one: all batches have it.
        batch_size: B, rows of a batch over all devices.
        seed: of the order.
        step: number of the first batch.

    Returns:
        dicts as of `task_records.Rows.batch`.
    """

    def batches():
        for chosen in _choose(len(rows), rows.lengths, batch_size, seed, step):
            longest = rows.lengths[chosen].max()
            yield rows.batch(chosen, next(x for x in lengths if x >= longest))

    example = rows.batch(np.zeros(batch_size, np.int64), lengths[-1])
    varies = len(lengths) > 1
    signature = {
        name: tf.TensorSpec(
            [
                None if varies and axis and size == lengths[-1] else size
                for axis, size in enumerate(array.shape)
            ],
            array.dtype,
        )
        for name, array in example.items()
    }
    dataset = tf.data.Dataset.from_generator(
        batches, output_signature=signature
    )
    return pipelines.untuned(dataset.prefetch(pipelines.BATCHES_AHEAD))


def describe_rows(
    rows: example_files.Rows, batch_size: int, seed: int, step: int
) -> str:
    """Says which rows are in the batch of a step, from 1.

    Args:
        rows, batch_size, seed: as for `training_batches`.
        step: from 1.
    """
    chosen = _choose(len(rows), rows.lengths, batch_size, seed, step - 1)
    return "examples " + ", ".join(str(row) for row in next(chosen))


def _choose(
    count: int, lengths: np.ndarray, batch_size: int, seed: int, step: int
) -> Iterator[np.ndarray]:
    """Yields the numbers of the rows of each batch from `step` on."""
    epoch = step * batch_size // count
    while True:
        # Batches whose first row is of this epoch.
        first = -(-epoch * count // batch_size)
        last = -(-(epoch + 1) * count // batch_size)
        more = -(-batch_size // count)  # epochs the last batch may reach into
        order = np.concatenate(
            [_rng(seed, epoch + i).permutation(count) for i in range(1 + more)]
        )
        for start in range(first, last, _WINDOW):
            stop = min(start + _WINDOW, last)
            if stop <= step:
                continue
            offset = start * batch_size - epoch * count
            held = order[offset : offset + (stop - start) * batch_size]
            held = held[np.argsort(lengths[held], kind="stable")]
            batches = held.reshape(-1, batch_size)
            batches = _rng(seed, epoch, start).permutation(batches)
            yield from batches[max(0, step - start) :]
        epoch += 1


def _rng(*where: int) -> np.random.Generator:
    return np.random.default_rng([x % 2**63 for x in where])
