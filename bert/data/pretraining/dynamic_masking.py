"""Dynamic masking: new masks in every epoch (RoBERTa, arXiv:1907.11692).

The masks of a record are removed and drawn again when it is loaded.
"""

import functools

import numpy as np
import tensorflow as tf

from bert.data import features
from bert.data.pretraining import draws, masking
from bert.data.pretraining.settings import InstanceSettings
from bert.data.records import pipelines

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
    step: int,
    share: tuple[int, int] = (0, 1),
) -> tf.data.Dataset:
    """Draws the masks of every record again.

    The masks are a function of (seed, number of the record, counted over all
    epochs) alone. Those of a batch are drawn as whole arrays.

    Args:
        batches: from `reader.training_batches`.
        settings: shares and seed.
        vocabulary: vocabulary of the records.
        step: number of batches that were used before.
        share: as for `reader.training_batches`.

    Returns:
        The same batches with new ids, positions, labels and weights.
    """

    def in_numpy(number, *arrays):
        worker, workers = share
        first = (int(number) * workers + worker) * len(arrays[0])
        return remask_records(arrays, settings, vocabulary, first)

    def remask(number, batch):
        packed = features.SEQUENCE_IDS in batch
        numbers = features.SEQUENCE_IDS if packed else features.INPUT_MASK
        remasked = tf.numpy_function(
            in_numpy,
            [number, *(batch[name] for name in (*_REPLACED, numbers))],
            [batch[name].dtype for name in _REPLACED],
        )

        # NumPy's results have no static shape, which a compiled step needs.
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
    """Draws the masks of some records again.

    Args:
        arrays: ids, int32 [N, S]; positions and labels, int32 [N, P]; weights,
            float32 [N, P]; and the number of the instance that each token
            belongs to, int32 [N, S], 0 = padding.
        settings: shares and seed.
        vocabulary: vocabulary of the ids.
        first: number of the first record, counted over all epochs.

    Returns:
        New ids, positions, labels and weights.
    """
    ids, positions, labels, weights, numbers = arrays
    rows, columns = weights.nonzero()

    # The record before masking; then as when records are made.
    ids = ids.copy()
    ids[rows, positions[rows, columns]] = labels[rows, columns]
    draw = functools.partial(
        draws.rows, (settings.random_seed, "epochs"), first, len(ids)
    )
    masked = masking.mask_rows(ids, numbers, settings, vocabulary, draw)
    return [masked[name] for name in _REPLACED]
