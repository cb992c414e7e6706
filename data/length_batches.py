"""Training batches of rows of like lengths: little of a batch is padding.

An epoch is every row once, in an order drawn for it; a batch takes only its
missing rows from the next epoch. Within 64 batches rows are sorted by length
and cut into batches, and the batches come in a random order:

    order of the epoch  5 9 2 7 | 4 4 8 3     lengths of drawn rows
    sorted, cut         2 5 7 9 | 3 4 4 8
    padded to a bucket  16      | 16
"""

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from data.records import example_files, pipelines

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


def tell_rows(
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
