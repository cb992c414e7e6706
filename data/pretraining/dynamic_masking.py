"""Dynamic masking: new masks in every epoch (RoBERTa, arXiv:1907.11692).

The masks of a record are removed and drawn again when it is loaded.
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
    """Draws the masks of every record again.

    The masks are a function of (seed, epoch, number in the epoch) alone. They
    are drawn in Python: about 10,000 sequences of 128 tokens a second.

    Args:
        batches: from `reader.training_batches`.
        settings: shares and seed.
        vocabulary: vocabulary of the records.
        num_records: number of records in an epoch.
        step: number of batches that were used before.

    Returns:
        The same batches with new ids, positions, labels and weights.
    """

    def remask(number, batch):
        names = [*_REPLACED, features.INPUT_MASK]
        if features.SEQUENCE_IDS in batch:
            names[-1] = features.SEQUENCE_IDS

        def in_python(number, *arrays):
            first = int(number) * len(arrays[0])
            return remask_records(
                arrays, settings, vocabulary, num_records, first
            )

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

    return pipelines.without_autotuning(
        batches.enumerate(step)
        .map(remask, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        .prefetch(pipelines.BATCHES_AHEAD)
    )


def remask_records(
    arrays: tuple[np.ndarray, ...],
    settings: InstanceSettings,
    vocabulary: masking.Vocabulary,
    num_records: int,
    first: int,
) -> list[np.ndarray]:
    """Draws the masks of some records again.

    Args:
        arrays: ids, int32 [N, S]; positions and labels, int32 [N, P]; weights,
            float32 [N, P]; and the number of the instance that each token
            belongs to, int32 [N, S], 0 = padding.
        settings: shares and seed.
        vocabulary: vocabulary of the ids.
        num_records: number of records in an epoch.
        first: number of the first record, counted over all epochs.

    Returns:
        New ids, positions, labels and weights.
    """
    remasked: list[tuple[list, list, list, list]] = []
    for index, (ids, positions, labels, weights, numbers) in enumerate(
        zip(*arrays)
    ):
        epoch, record = divmod(first + index, num_records)
        rng = random.Random(f"{settings.random_seed}/{epoch}/{record}")
        real = weights > 0
        ids = ids.copy()
        ids[positions[real]] = labels[real]
        remasked.append(_remask(ids, numbers, settings, vocabulary, rng))
    lengths = [arrays[0].shape[1]] + [arrays[1].shape[1]] * 3
    return [
        sequences.pad_rows(list(column), length, array.dtype)
        for column, length, array in zip(zip(*remasked), lengths, arrays)
    ]


def _remask(ids, numbers, settings, vocabulary, rng) -> tuple:
    """Masks each instance of a row separately."""
    masked, positions, labels = [], [], []
    for number in range(1, numbers.max() + 1):
        start = len(masked)
        left = settings.max_predictions_per_seq - len(positions)
        if left == 0:
            masked += ids[numbers == number].tolist()
            continue
        found = masking.mask_tokens(
            ids[numbers == number].tolist(),
            dataclasses.replace(settings, max_predictions_per_seq=left),
            vocabulary,
            rng,
        )
        masked += found[0]
        positions += [start + position for position in found[1]]
        labels += found[2]
    return masked, positions, labels, [1.0] * len(positions)
