"""Batches of rows of token ids, for Keras: shuffled, or by length.

Columns are rows, (ids, segment ids) without padding, and then what Keras
takes beside the inputs, labels and weights: an array, [N, ...], or a list of
N arrays, which are padded as the rows are.
"""

import itertools
import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from bert.common import forks
from bert.data import batching, features, length_batches, sequences

INPUTS = dict.fromkeys(
    features.ENCODER_INPUTS, tf.TensorSpec([None, None], tf.int32)
)


def training(
    columns: tuple, batch_size: int, seed: int, shuffle: bool = False
) -> tf.data.Dataset:
    """Batches of an epoch; the shuffled ones are those of the scripts."""
    length_batches.check_size(batch_size)
    lengths = np.array([len(ids) for ids, _ in columns[0]])
    count = len(lengths)
    size = min(batch_size, count)
    steps, epochs = math.ceil(count / size), itertools.count()

    def batches():
        order = np.split(np.arange(count), range(size, count, size))
        if shuffle:  # endless, so an epoch goes on where the last ended
            step = next(epochs) * steps
            order = batching.choose(count, lengths, size, seed, step)
        for chosen in itertools.islice(order, steps):
            yield batch(columns, chosen)

    # Lists are padded to the length of a batch; arrays have a shape.
    signature = (
        INPUTS,
        *(
            tf.TensorSpec([None, None], column[0].dtype)
            if isinstance(column, list)
            else tf.TensorSpec([None, *column.shape[1:]], column.dtype)
            for column in columns[1:]
        ),
    )
    return dataset(batches, signature, steps)


def by_length(
    rows: list, batch_size: int
) -> tuple[tf.data.Dataset, np.ndarray]:
    """Batches of rows of similar lengths.

    Returns:
        the batches, and the position of each row in them.
    """
    length_batches.check_size(batch_size)

    # By length, as each batch is padded to its longest row.
    order = np.argsort([len(ids) for ids, _ in rows])
    starts = range(0, len(order), batch_size)

    def batches():
        for start in starts:
            yield batch((rows,), order[start : start + batch_size])

    # The argsort of an order is its inverse.
    return dataset(batches, (INPUTS,), len(starts)), np.argsort(order)


def batch(columns: tuple, chosen: np.ndarray | None = None) -> tuple:
    """Some rows of the columns, or all: the encoder's inputs, and the others.

    Args:
        columns: the columns.
        chosen: numbers of the rows; None: all.
    """
    forks.check(forks.TENSORFLOW)
    chosen = range(len(columns[0])) if chosen is None else chosen
    rows = [columns[0][i] for i in chosen]
    length = max(len(ids) for ids, _ in rows)

    def taken(column):
        if isinstance(column, list):
            parts = [column[i] for i in chosen]
            return sequences.pad_rows(parts, length, parts[0].dtype)
        return column[np.asarray(chosen)]

    inputs = length_batches.pad(rows, length)
    return inputs, *map(taken, columns[1:])


def dataset(batches: Callable, signature: tuple, steps: int) -> tf.data.Dataset:
    """A dataset of what a generator yields.

    Args:
        batches: function without arguments, whose result is iterated.
        signature: specs of a batch.
        steps: number of the batches; less than 0: unknown.
    """
    forks.check(forks.TENSORFLOW)
    batched = tf.data.Dataset.from_generator(
        batches, output_signature=signature
    )

    # A generator cannot tell Keras the number of its batches.
    if steps >= 0:
        batched = batched.apply(tf.data.experimental.assert_cardinality(steps))
    return batched.prefetch(2)
