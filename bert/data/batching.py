"""Batches of examples of similar lengths, for prediction and training."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
import tensorflow as tf

from bert.common.errors import UserError
from bert.data import features, sequences
from bert.data.records import pipelines
from bert.data.records.examples import Examples

_WINDOW = 64  # batches that are sorted together

EncodedExample = tuple[list[int], list[int]]  # ids and segment ids, unpadded
AnyExample = TypeVar("AnyExample")


def check_size(batch_size: int) -> None:
    """Rejects a batch size that is no number from 1."""
    if not isinstance(batch_size, int | np.integer) or batch_size < 1:
        raise UserError(f"batch_size={batch_size}", expected="1 or more")


def bucket_lengths(max_seq_length: int) -> list[int]:
    """Lengths that sequences are padded to: 8, 16, 24, ..., 128, 160, 192, ...

    Multiples of 8; above 128, four per octave. Each length that occurs is
    compiled once.

    Args:
        max_seq_length: S, the last length.
    """
    lengths, power = list(range(8, 128, 8)), 128
    while power < max_seq_length:
        lengths += range(power, 2 * power, power // 4)
        power *= 2
    return [x for x in lengths if x < max_seq_length] + [max_seq_length]


def compiled_lengths(lengths: list[int]) -> list[int]:
    """Those of the lengths that are worth a program: 32, 64, 128, ..., S.

    GPUs and TPUs compile the whole step for each length, which takes a minute
    or more for large networks.

    Args:
        lengths: from `bucket_lengths`.
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


def in_order(
    examples: Iterable[AnyExample],
    run: Callable[[dict[str, np.ndarray]], list],
    lengths: list[int],
    batch_size: int,
    window: int,
    pad: Callable[[list[AnyExample], int], dict[str, np.ndarray]] = pad,
    length_of: Callable[[AnyExample], int] = lambda example: len(example[0]),
) -> Iterator:
    """Runs a function on batches of similar lengths; keeps the order.

    Args:
        examples: examples of at most `lengths[-1]` tokens; read lazily.
        run: maps a batch of at most `batch_size` examples to a list with one
            result per example.
        lengths: S of the batches, ascending.
        batch_size: maximum number of examples in a batch.
        window: number of examples that are sorted by length at a time.
        pad: maps a list of examples and S to a batch.
        length_of: maps an example to its number of tokens.

    Yields:
        The result of each example, in the order of `examples`.
    """
    examples = iter(examples)
    while held := list(itertools.islice(examples, window)):
        sizes = [length_of(example) for example in held]
        order = sorted(range(len(held)), key=sizes.__getitem__)
        results: list = [None] * len(held)

        # Each length takes the examples that fit no shorter one.
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


def training_batches(
    examples: Examples,
    lengths: list[int],
    batch_size: int,
    seed: int,
    step: int,
    share: tuple[int, int] = (0, 1),
) -> tf.data.Dataset:
    """Endless shuffled batches, a function of the seed and the step.

    Args:
        examples: training examples.
        lengths: S of the batches, ascending; with a single length, all batches
            have it.
        batch_size: B, number of examples in a batch over all devices.
        seed: seed of the order.
        step: number of the first batch, from 0.
        share: number of a worker and of all workers; the batches are its part
            of the whole ones.

    Returns:
        Batches as `Examples.batch` returns them.
    """
    part = pipelines.part_of_batch(batch_size, share)

    def batches():
        count = len(examples)
        for chosen in choose(count, examples.lengths, batch_size, seed, step):
            longest = examples.lengths[chosen].max()
            length = next(x for x in lengths if x >= longest)
            yield examples.batch(chosen[part], length)

    # An axis as long as the longest batch is that of tokens, and varies.
    sample = examples.batch(np.zeros(batch_size, np.int64)[part], lengths[-1])
    varies = len(lengths) > 1
    signature = {
        name: tf.TensorSpec(
            [
                None if varies and axis and size == lengths[-1] else size
                for axis, size in enumerate(array.shape)
            ],
            array.dtype,
        )
        for name, array in sample.items()
    }

    dataset = tf.data.Dataset.from_generator(
        batches, output_signature=signature
    )
    return pipelines.without_autotuning(
        dataset.prefetch(pipelines.BATCHES_AHEAD)
    )


def report_examples(
    examples: Examples,
    batch_size: int,
    seed: int,
    step: int,
) -> str:
    """Lists the examples in the batch of a step.

    Args:
        examples, batch_size, seed: as for `training_batches`.
        step: number of the step, from 1.
    """
    count = len(examples)
    chosen = choose(count, examples.lengths, batch_size, seed, step - 1)
    return "examples " + ", ".join(str(index) for index in next(chosen))


def choose(
    count: int, lengths: np.ndarray, batch_size: int, seed: int, step: int
) -> Iterator[np.ndarray]:
    """Yields the numbers of the examples of each batch, without end.

    Every batch is full: one at the end of an epoch reaches into the next. The
    examples of a batch have similar lengths.

    Args:
        count: number of examples.
        lengths: tokens of each, [N].
        batch_size: B.
        seed: seed of the order.
        step: number of the first batch, from 0.
    """
    epoch = step * batch_size // count
    while True:
        # Batches whose first example is of this epoch.
        first = -(-epoch * count // batch_size)
        last = -(-(epoch + 1) * count // batch_size)

        # The last of them may reach into the next epochs.
        more = -(-batch_size // count)
        order = np.concatenate(
            [_rng(seed, epoch + i).permutation(count) for i in range(1 + more)]
        )
        for start in range(first, last, _WINDOW):
            stop = min(start + _WINDOW, last)
            if stop <= step:
                continue

            # Sorted by length in a window, then the batches shuffled.
            offset = start * batch_size - epoch * count
            held = order[offset : offset + (stop - start) * batch_size]
            held = held[np.argsort(lengths[held], kind="stable")]
            batches = held.reshape(-1, batch_size)
            batches = _rng(seed, epoch, start).permutation(batches)
            yield from batches[max(0, step - start) :]
        epoch += 1


def _rng(*seeds: int) -> np.random.Generator:
    return np.random.default_rng([x % 2**63 for x in seeds])
