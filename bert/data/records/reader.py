"""Reads batches of TFRecord shards, in an order given by seed and step."""

import struct
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from bert.common import storage
from bert.data import feature_names
from bert.data.records import pipelines

_SHUFFLED_RECORDS = 4096
_FILES_AT_ONCE = 4
LONGEST = 1 << 20  # maximum bytes of a record; 512 tokens need 10,000


def training_batches(
    files: list[str],
    num_records: int,
    schema: dict[str, tuple[str, int]],
    batch_size: int,
    seed: int,
    step: int,
    worker: tuple[int, int] = (0, 1),
) -> tf.data.Dataset:
    """Returns infinite shuffled batches, starting at a step.

    An epoch has every record once, in an order drawn from (seed, epoch). The
    last batch of an epoch is completed with records of the next epoch. Records
    before `step` are skipped without parsing.

    Args:
        files: list of str. Paths of the shards.
        num_records: int. Number of records in all shards.
        schema: dict. Result of `feature_names.pretraining_schema`.
        batch_size: int. Number of records in a batch.
        seed: int. Seed of the order.
        step: int. Number of batches to skip.
        worker: (int, int). Index of the worker and number of workers; only the
            worker's part of each batch is parsed. Default: (0, 1).

    Returns:
        tf.data.Dataset of dicts: the schema's features, int32 or float32
        [N, length], and `is_real_example`, float32 [N] of ones. N is
        batch_size / workers.
    """
    part = pipelines.part_of_batch(batch_size, worker)
    return pipelines.without_autotuning(
        _shuffled(files, num_records, seed, step * batch_size)
        .batch(batch_size, drop_remainder=True)
        .map(
            lambda records: _parse(
                records[part], schema, part.stop - part.start
            ),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        .prefetch(pipelines.BATCHES_AHEAD)
    )


def report_records(
    files: list[str], num_records: int, batch_size: int, seed: int, step: int
) -> str:
    """Lists the records in the batch of a step.

    Args:
        files, num_records, batch_size, seed: See `training_batches`.
        step: int. Number of the step, from 1.

    Returns:
        str. Each file with the numbers of its records, from 0.
    """

    def numbered(path):
        records = tf.data.TFRecordDataset(path).enumerate()
        return records.map(lambda number, _: (path, number))

    # The same pipeline as in training, with numbers instead of contents.
    first = (step - 1) * batch_size
    order = _shuffled(files, num_records, seed, first, numbered).take(
        batch_size
    )
    numbers: dict[str, list[str]] = {}
    for path, number in order.as_numpy_iterator():
        numbers.setdefault(path.decode(), []).append(str(number))
    return "; ".join(f"{path}: {', '.join(x)}" for path, x in numbers.items())


def evaluation_batches(
    files: list[str],
    schema: dict[str, tuple[str, int]],
    batch_size: int,
    max_batches: int,
) -> tf.data.Dataset:
    """Returns batches of every record once, in the order of the files.

    The last batch is padded with records of zeros whose `is_real_example` is
    0.

    Args:
        files: list of str. Paths of the shards.
        schema: dict. Result of `feature_names.pretraining_schema`.
        batch_size: int. Number of records in a batch.
        max_batches: int. Maximum number of batches.

    Returns:
        tf.data.Dataset of batches as returned by `training_batches`.
    """
    return pipelines.without_autotuning(
        tf.data.TFRecordDataset(files)
        .take(max_batches * batch_size)
        .batch(batch_size)
        .map(lambda records: _parse(records, schema, batch_size))
        .prefetch(pipelines.BATCHES_AHEAD)
    )


def read_lengths(path: str) -> dict[str, int]:
    """Reads the lengths of the first record.

    Lengths that cannot be read are missing or 0; `content_check` reports the
    cause. This runs no TensorFlow operation, because workers must be connected
    before the first operation.

    Returns:
        dict. `max_seq_length` and `max_predictions_per_seq`, or {}.
    """
    try:
        with storage.open_file(path, "rb") as file:
            (size,) = struct.unpack("<Q4x", file.read(12))
            record = file.read(min(size, LONGEST))
        values = tf.train.Example.FromString(record).features.feature
    # Protobuf's DecodeError is not public.
    except Exception:
        return {}

    return {
        name: len(values[feature].int64_list.value)
        for name, feature in (
            ("max_seq_length", feature_names.INPUT_IDS),
            ("max_predictions_per_seq", feature_names.MASKED_LM_POSITIONS),
        )
    }


def parsing(schema: dict[str, tuple[str, int]]) -> dict:
    """Returns the features of a schema for `tf.io.parse_example`."""
    return {
        name: tf.io.FixedLenFeature([length], tf.as_dtype(dtype))
        for name, (dtype, length) in schema.items()
    }


def _shuffled(
    files: list[str],
    num_records: int,
    seed: int,
    first: int,
    read: Callable = tf.data.TFRecordDataset,
) -> tf.data.Dataset:
    """Returns infinite shuffled elements of `read(file)`, from `first` on."""
    epoch, first = divmod(first, num_records)
    epochs = tf.data.Dataset.range(epoch, np.iinfo(np.int64).max)
    return epochs.flat_map(lambda n: _epoch(files, seed, n, read)).skip(first)


def _epoch(
    files: list[str], seed: int, number: tf.Tensor, read: Callable
) -> tf.data.Dataset:
    seed = number + seed * 1_000_003 % 2**62
    return (
        tf.data.Dataset.from_tensor_slices(files)
        .shuffle(len(files), seed=seed, reshuffle_each_iteration=False)
        .interleave(
            read,
            cycle_length=min(_FILES_AT_ONCE, len(files)),
        )
        .shuffle(_SHUFFLED_RECORDS, seed=seed, reshuffle_each_iteration=False)
    )


def _parse(records, schema, batch_size: int) -> dict[str, tf.Tensor]:
    """Parses string [<= batch_size] to features [batch_size, length]."""
    batch = tf.io.parse_example(records, parsing(schema))
    batch[feature_names.IS_REAL_EXAMPLE] = tf.ones(tf.shape(records)[:1])

    # Compiled steps have a fixed batch size, so zeros fill the last batch.
    missing = batch_size - tf.shape(records)[0]
    for name, values in batch.items():
        if values.dtype == tf.int64:
            values = tf.cast(values, tf.int32)
        padding = [[0, missing]] + [[0, 0]] * (len(values.shape) - 1)
        batch[name] = tf.ensure_shape(
            tf.pad(values, padding), [batch_size, *values.shape[1:]]
        )
    return batch
