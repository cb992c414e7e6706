"""Dynamic masking: new masks in every epoch (RoBERTa, arXiv:1907.11692).

The masks of a record are removed and drawn again when it is loaded.
"""

import functools

import numpy as np
import tensorflow as tf

from bert.data import feature_names
from bert.data.pretraining import draws, masking
from bert.data.pretraining.settings import InstanceSettings
from bert.data.records import pipelines

_REPLACED = (
    feature_names.INPUT_IDS,
    feature_names.MASKED_LM_POSITIONS,
    feature_names.MASKED_LM_IDS,
    feature_names.MASKED_LM_WEIGHTS,
)


def remask_batches(
    batches: tf.data.Dataset,
    settings: InstanceSettings,
    vocabulary: masking.Vocabulary,
    step: int,
    worker: tuple[int, int] = (0, 1),
) -> tf.data.Dataset:
    """Draws the masks of every record again.

    The masks depend only on the seed and the number of the record, counted
    over all epochs. The masks of a batch are drawn together as arrays.

    Args:
        batches: tf.data.Dataset. Result of `reader.training_batches`.
        settings: InstanceSettings. Masking probabilities and seed.
        vocabulary: masking.Vocabulary. Vocabulary of the records.
        step: int. Number of batches that were skipped.
        worker: (int, int). Index of the worker and number of workers. Default:
            (0, 1).

    Returns:
        tf.data.Dataset. The batches with new ids, positions, labels, weights.
    """

    def in_numpy(number, *arrays):
        index, workers = worker
        first = (int(number) * workers + index) * len(arrays[0])
        return remask_records(arrays, settings, vocabulary, first)

    def remask(number, batch):
        packed = feature_names.SEQUENCE_IDS in batch
        numbers = (
            feature_names.SEQUENCE_IDS if packed else feature_names.INPUT_MASK
        )
        remasked = tf.numpy_function(
            in_numpy,
            [number, *(batch[name] for name in (*_REPLACED, numbers))],
            [batch[name].dtype for name in _REPLACED],
        )

        # numpy_function drops static shapes, which a compiled step needs.
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
    first: int,
) -> list[np.ndarray]:
    """Draws the masks of a batch of records again.

    Args:
        arrays: tuple of arrays. Ids, int32 [N, S]; positions and labels,
            int32 [N, P]; weights, float32 [N, P]; and the number of each
            token's instance, int32 [N, S], 0 = padding.
        settings: InstanceSettings. Masking probabilities and seed.
        vocabulary: masking.Vocabulary. Vocabulary of the ids.
        first: int. Number of the first record, counted over all epochs.

    Returns:
        list of arrays. New ids, positions, labels and weights.
    """
    ids, positions, labels, weights, numbers = arrays
    rows, columns = weights.nonzero()

    # Undo the masking, then mask as when records are created.
    ids = ids.copy()
    ids[rows, positions[rows, columns]] = labels[rows, columns]
    draw = functools.partial(
        draws.rows, (settings.random_seed, "epochs"), first, len(ids)
    )
    masked = masking.mask_rows(ids, numbers, settings, vocabulary, draw)
    return [masked[name] for name in _REPLACED]
