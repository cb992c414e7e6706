"""Pre-training records as a `tf.data.Dataset` for `fit`."""

import os

import tensorflow as tf

from bert.common.errors import UserError, name_of
from bert.data import feature_names
from bert.data.records import content_check, reader
from bert.data.records.shards import Records


def pretraining_dataset(
    files: str | list[str],
    batch_size: int,
    *,
    next_sentence: bool = False,
    seed: int = 12345,
    step: int = 0,
) -> tf.data.Dataset:
    """Returns an infinite shuffled dataset to fit `masked_lm(encoder)`.

        batches = bert.pretraining_dataset("records/*.tfrecord", 8)
        loss = keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction="mean_with_sample_weight"
        )
        model = bert.masked_lm(encoder)
        model.compile("adam", {"masked_lm_logits": loss})
        model.fit(batches, steps_per_epoch=2)

    An epoch has every record once, in an order drawn from (seed, epoch).

    Args:
        files: str or list of str. Paths or a pattern of records written by
            create_pretraining_data.py.
        batch_size: int. Batch size B.
        next_sentence: bool. Whether to add the labels of `masked_lm(encoder,
            next_sentence=True)`. Default: False.
        seed: int. Seed of the order. Default: 12345.
        step: int. Number of batches to skip when training is resumed.
            Default: 0.

    Returns:
        tf.data.Dataset of (inputs, labels, weights). The inputs are the
        encoder's inputs, int32 [B, S], and masked_lm_positions, int32 [B, P].
        The labels by output name are int32 [B, P] and [B, 1], with float32
        weights of the same shapes.

    Raises:
        UserError: A file is missing, damaged or packed.
    """
    if isinstance(files, str | os.PathLike):
        files = [files]
    paths = list(map(os.fspath, files))
    records = Records.open(",".join(paths), "files")
    if records.is_packed:
        raise UserError(
            "has packed rows",
            path=name_of(records.files),
            expected="one instance per row",
            fix="make the records without --pack_sequences",
        )

    # Without a manifest, the size of the vocabulary is unknown.
    sizes = [manifest.vocab_size for manifest in records.manifests]
    limit = max(sizes, default=content_check.ANY_ID)
    count = content_check.count_records(records, limit)
    batches = reader.training_batches(
        records.files, count, records.schema, batch_size, seed, step
    )
    return batches.map(lambda batch: _split(batch, next_sentence))


def _split(batch: dict, next_sentence: bool) -> tuple[dict, dict, dict]:
    names = (*feature_names.ENCODER_INPUTS, feature_names.MASKED_LM_POSITIONS)
    inputs = {name: batch[name] for name in names}

    labels = {"masked_lm_logits": batch[feature_names.MASKED_LM_IDS]}
    weights = {"masked_lm_logits": batch[feature_names.MASKED_LM_WEIGHTS]}
    if next_sentence:
        labels["next_sentence_logits"] = batch[
            feature_names.NEXT_SENTENCE_LABELS
        ]
        weights["next_sentence_logits"] = batch[feature_names.IS_REAL_EXAMPLE]
    return inputs, labels, weights
