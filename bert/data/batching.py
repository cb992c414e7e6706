"""Training batches of examples, shuffled by similar lengths or in order."""

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from bert.common import processes
from bert.data import bucketing
from bert.data.records import pipelines
from bert.data.records.examples import Examples

_WINDOW = 64  # batches that are sorted together

# Measured on two cores: multiplications and additions of training steps in the
# second that the programs of a length take to compile, and the fraction of a
# step that these programs save.
_COMPILING, _SAVING = 2e11, 0.2
_EPOCHS = 3  # of a usual run


def training_batches(
    examples: Examples,
    lengths: Sequence[int],
    batch_size: int,
    seed: int,
    step: int,
    worker: tuple[int, int] = (0, 1),
) -> tf.data.Dataset:
    """Returns infinite shuffled batches, which depend on seed and step only.

    Args:
        examples: Examples. Training examples.
        lengths: sequence of int. Allowed sequence lengths S of the batches,
            ascending.
        batch_size: int. B, number of examples in a batch over all devices.
        seed: int. Seed of the order.
        step: int. Number of the first batch, from 0.
        worker: (int, int). Index of the worker and number of workers. The
            worker gets its part of each batch. Default: (0, 1), the full
            batches.

    Returns:
        tf.data.Dataset of batches as returned by `Examples.batch`.
    """
    part = pipelines.part_of_batch(batch_size, worker)

    def batches():
        count = len(examples)
        for chosen in choose(count, examples.lengths, batch_size, seed, step):
            yield batch(examples, lengths, chosen, part)

    return dataset(batches, examples, lengths, part.stop - part.start)


def ordered_batches(
    examples: Examples, lengths: Sequence[int], batch_size: int
) -> tf.data.Dataset:
    """Returns infinite batches of the examples in their order.

    The last batch of an epoch has the examples that are left.

    Args:
        examples, lengths, batch_size: See `training_batches`.
    """
    count = len(examples)
    order = np.split(np.arange(count), range(batch_size, count, batch_size))

    def batches():
        for chosen in itertools.cycle(order):
            yield batch(examples, lengths, chosen)

    return dataset(batches, examples, lengths, None)


def fastest_lengths(
    examples: Examples,
    lengths: list[int],
    batch_size: int,
    operations: float,
) -> bucketing.BatchLengths:
    """Chooses the lengths of a run whose steps can compile small programs.

    They are a function of the arguments only, as dropout masks depend on them.
    The run is assumed to have three epochs, so that more epochs do not change
    its first ones. All seeds have the same lengths, and share the programs.

    Args:
        examples, lengths, batch_size: See `training_batches`.
        operations: float. Multiplications and additions of a step for a token.
    """
    count = len(examples)
    epoch = choose(count, examples.lengths, batch_size, seed=0, step=0)
    longest = np.array(
        [
            examples.lengths[chosen].max()
            for chosen in itertools.islice(epoch, -(-count // batch_size))
        ]
    )
    sequences = batch_size * examples.choices
    cost = _COMPILING / operations / sequences / _EPOCHS
    return bucketing.fastest(lengths, longest, cost, _SAVING)


def batch(
    examples: Examples,
    lengths: Sequence[int],
    chosen: np.ndarray,
    part: slice = slice(None),
) -> dict[str, np.ndarray]:
    """Pads examples to the first length that is long enough for all of them.

    Args:
        examples: Examples. Training examples.
        lengths: sequence of int. Allowed lengths, ascending.
        chosen: int [B]. Indices of the examples.
        part: slice. The examples of `chosen` to return. Default: all.
    """
    longest = examples.lengths[chosen].max()
    length = next(x for x in lengths if x >= longest)
    return examples.batch(chosen[part], length)


def dataset(
    batches: Callable[[], Iterator[dict]],
    examples: Examples,
    lengths: Sequence[int],
    size: int | None,
) -> tf.data.Dataset:
    """Makes a dataset of the batches of a generator.

    Args:
        batches: callable. Called without arguments; returns an iterator of
            results of `batch`.
        examples: Examples. Examples with the features of the batches.
        lengths: sequence of int. Allowed lengths of the batches.
        size: int or None. Number of examples in a batch; None if it varies.
    """
    processes.check_not_forked(processes.TENSORFLOW)
    sample = examples.batch(np.zeros(0, np.int64), lengths[-1])

    # An axis with the longest length is the token axis, whose size varies.
    varies = len(lengths) > 1
    signature = {
        name: tf.TensorSpec(
            [
                size,
                *(
                    None if varies and x == lengths[-1] else x
                    for x in array.shape[1:]
                ),
            ],
            array.dtype,
        )
        for name, array in sample.items()
    }

    made = tf.data.Dataset.from_generator(batches, output_signature=signature)
    return pipelines.without_autotuning(made.prefetch(pipelines.BATCHES_AHEAD))


def report_examples(
    examples: Examples,
    batch_size: int,
    seed: int,
    step: int,
) -> str:
    """Lists the examples in the batch of a step.

    Args:
        examples, batch_size, seed: See `training_batches`.
        step: int. Number of the step, from 1.
    """
    count = len(examples)
    chosen = choose(count, examples.lengths, batch_size, seed, step - 1)
    return "examples " + ", ".join(str(index) for index in next(chosen))


def choose(
    count: int, lengths: np.ndarray, batch_size: int, seed: int, step: int
) -> Iterator[np.ndarray]:
    """Yields the example indices of each batch, infinitely.

    Every batch is full: the last batch of an epoch continues with the next
    epoch. The examples of a batch have similar lengths.

    Args:
        count: int. Number of examples N.
        lengths: int [N]. Number of tokens of each example.
        batch_size: int. B.
        seed: int. Seed of the order.
        step: int. Number of the first batch, from 0.
    """
    epoch = step * batch_size // count
    while True:
        # Batches whose first example is in this epoch.
        first = -(-epoch * count // batch_size)
        last = -(-(epoch + 1) * count // batch_size)

        # The last batch may continue with the next epochs.
        more = -(-batch_size // count)
        order = np.concatenate(
            [_rng(seed, epoch + i).permutation(count) for i in range(1 + more)]
        )
        for start in range(first, last, _WINDOW):
            stop = min(start + _WINDOW, last)
            if stop <= step:
                continue

            # Examples are sorted by length in a window, then its batches are
            # shuffled.
            offset = start * batch_size - epoch * count
            held = order[offset : offset + (stop - start) * batch_size]
            held = held[np.argsort(lengths[held], kind="stable")]
            batches = held.reshape(-1, batch_size)
            batches = _rng(seed, epoch, start).permutation(batches)
            yield from batches[max(0, step - start) :]
        epoch += 1


def _rng(*seeds: int) -> np.random.Generator:
    return np.random.default_rng([x % 2**63 for x in seeds])
