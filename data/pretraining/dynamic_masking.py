"""New masks for the same records in every epoch (RoBERTa, arXiv:1907.11692).

The masks of a record are taken off and drawn again when it is loaded.
"""

import dataclasses
import random

import numpy as np
import tensorflow as tf

from data import features, sequences
from data.pretraining import masking
from data.pretraining.settings import InstanceSettings
from data.records import pipelines

_REPLACED = (
    features.INPUT_IDS,
    features.MASKED_LM_POSITIONS,
    features.MASKED_LM_IDS,
    features.MASKED_LM_WEIGHTS,
)


def remask_batches(
    batches: tf.data.Dataset,
    settings: InstanceSettings,
    vocabulary: masking.Vocabulary,
    num_records: int,
    step: int,
) -> tf.data.Dataset:
    """Draws the masks of every row again.

    They are a function of (seed, epoch, number in the epoch) alone. The rows
    pass through Python, which makes about 10,000 of 128 pieces a second.

    Args:
        batches: from `reader.training_batches`.
        settings: shares and seed.
        vocabulary: of the records.
        num_records: records of an epoch.
        step: batches that were used before.

    Returns:
        the same batches with other ids, places, labels and weights.
    """

    def remask(number, batch):
        names = [*_REPLACED, features.INPUT_MASK]
        if features.SEQUENCE_IDS in batch:
            names[-1] = features.SEQUENCE_IDS

        def in_python(number, *arrays):
            first = int(number) * len(arrays[0])
            return remask_rows(arrays, settings, vocabulary, num_records, first)

        remasked = tf.numpy_function(
            in_python,
            [number, *(batch[name] for name in names)],
            [batch[name].dtype for name in _REPLACED],
        )
        return {
            **batch,
            **{
                name: tf.ensure_shape(values, batch[name].shape)
                for name, values in zip(_REPLACED, remasked, strict=True)
            },
        }

    return pipelines.untuned(
        batches.enumerate(step)
        .map(remask, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        .prefetch(pipelines.BATCHES_AHEAD)
    )


def remask_rows(
    arrays: tuple[np.ndarray, ...],
    settings: InstanceSettings,
    vocabulary: masking.Vocabulary,
    num_records: int,
    first: int,
) -> list[np.ndarray]:
    """Draws the masks of some rows again.

    Args:
        arrays: ids, int32 [N, S]; places and labels, int32 [N, P]; weights,
            float32 [N, P]; and which instance of the row each piece is of,
            int32 [N, S], 0 = padding.
        settings: shares and seed.
        vocabulary: of the ids.
        num_records: records of an epoch.
        first: number of the first row, counted over all epochs.

    Returns:
        new ids, places, labels and weights.
    """
    rows: list[tuple[list, list, list, list]] = []
    for row, (ids, places, labels, weights, numbers) in enumerate(zip(*arrays)):
        epoch, record = divmod(first + row, num_records)
        rng = random.Random(f"{settings.random_seed}/{epoch}/{record}")
        real = weights > 0
        ids = ids.copy()
        ids[places[real]] = labels[real]
        rows.append(_remask(ids, numbers, settings, vocabulary, rng))
    lengths = [arrays[0].shape[1]] + [arrays[1].shape[1]] * 3
    return [
        sequences.pad_rows(list(column), length, array.dtype)
        for column, length, array in zip(zip(*rows), lengths, arrays)
    ]


def _remask(ids, numbers, settings, vocabulary, rng) -> tuple:
    """Masks each instance of a row on its own."""
    masked, places, labels = [], [], []
    for number in range(1, numbers.max() + 1):
        start = len(masked)
        left = settings.max_predictions_per_seq - len(places)
        if left == 0:
            masked += ids[numbers == number].tolist()
            continue
        mine = masking.mask_tokens(
            ids[numbers == number].tolist(),
            dataclasses.replace(settings, max_predictions_per_seq=left),
            vocabulary,
            rng,
        )
        masked += mine[0]
        places += [start + place for place in mine[1]]
        labels += mine[2]
    return masked, places, labels, [1.0] * len(places)
