"""Checks of the contents of shards: hashes, features, ranges of numbers."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from bert.common import storage
from bert.common.errors import UserError, name_of
from bert.common.progress import Progress, log
from bert.data import feature_names
from bert.data.records import pipelines, reader, shard_check
from bert.data.records.shards import Records, Shard

_HASHED_BYTES = 4 << 30  # hashing takes some seconds
_CHECKED_AT_ONCE = 256
ANY_ID = 1 << 31


def count_records(records: Records, vocab_size: int = ANY_ID) -> int:
    """Checks the contents of shards and counts their records.

    Local shards in a manifest are compared with its hashes, if they have at
    most 4 GB together. Shards without a manifest are read completely.

    Args:
        records: Records. The shards.
        vocab_size: int. All ids must be below it.

    Raises:
        UserError: A shard is damaged, does not fit the settings or has no
            masked token, or all shards are empty.
    """
    total = sum(x.entry.bytes for x in records.shards if x.entry)
    progress = Progress("compared", total / 1e6, "MB")
    count = compared = 0
    for shard in records.shards:
        path, entry = shard.path, shard.entry
        if entry is None:
            log(f"{path}: not in a manifest, checking every record")
            count += _count_unlisted(path, records.schema, vocab_size)
            continue

        # The size of every listed shard was compared when it was opened.
        if total <= _HASHED_BYTES and not storage.is_remote(path):
            _check_shard(shard)
            compared += entry.bytes
            progress.update(compared / 1e6)
        count += entry.records

    files = records.files
    if total > _HASHED_BYTES:
        log(
            f"{name_of(files)}: {total / 1e9:.0f} GB, sizes "
            "compared; doctor.py checks their contents"
        )
    if count == 0:
        raise UserError(
            "no records", path=",".join(files), expected="TFRecords"
        )
    return count


@contextlib.contextmanager
def locating_damage(sets: Sequence[Records]) -> Iterator[None]:
    """Context manager that locates the damage if records cannot be read.

    Args:
        sets: sequence of Records. The records that are read in the context.

    Raises:
        UserError: A shard is damaged; names the file, record and cause.
    """
    try:
        yield
    except (
        tf.errors.DataLossError,
        tf.errors.InvalidArgumentError,
        tf.errors.NotFoundError,
    ):
        for records in sets:
            for shard in records.shards:
                _check_shard(shard)
                if shard.entry is None:
                    check_records(shard.path, records.schema, ANY_ID)
        raise  # the records are undamaged: the error has another cause


def check_records(
    path: str,
    schema: dict[str, tuple[str, int]],
    vocab_size: int,
    on_batch: Callable[[dict[str, np.ndarray], int, int], None] | None = None,
) -> int:
    """Reads and checks a whole shard.

    Args:
        path: str. The shard.
        schema: dict. Result of `feature_names.pretraining_schema`.
        vocab_size: int. V; all ids must be below it.
        on_batch: callable or None. Called for each batch of valid records.
            Arguments: its features, int64 or float32 [N, length]; the number
            of its first record; the size in bytes of the records before it.

    Returns:
        int. The number of records.

    Raises:
        UserError: A record is damaged, lacks a feature, or has a feature of a
            wrong length or a number out of range. Devices do not report such
            numbers: they read zeros or a wrong row of a table.
    """
    highest = {
        feature_names.INPUT_IDS: vocab_size - 1,
        feature_names.INPUT_MASK: 1,
        feature_names.SEGMENT_IDS: 1,
        feature_names.MASKED_LM_POSITIONS: schema[feature_names.INPUT_IDS][1]
        - 1,
        feature_names.MASKED_LM_IDS: vocab_size - 1,
        feature_names.MASKED_LM_WEIGHTS: 1,
        feature_names.NEXT_SENTENCE_LABELS: 1,
    }

    # TensorFlow trusts the lengths of records and may abort the process.
    whole, damage = shard_check.scan(path, reader.LONGEST)
    if damage:
        raise UserError(
            f"cannot be read after record {whole}",
            path=path,
            expected="TFRecords",
            fix="make the records again",
        )

    count = size = 0
    dataset = tf.data.TFRecordDataset(path).batch(_CHECKED_AT_ONCE)
    for records in pipelines.without_autotuning(dataset):
        try:
            batch = tf.io.parse_example(records, reader.parsing(schema))
        # UnicodeDecodeError: TensorFlow fails to quote some records.
        except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
            _raise_mismatch(records.numpy(), schema, path, count)
            raise

        batch = {name: values.numpy() for name, values in batch.items()}
        for name, value in highest.items():
            _check_range(batch[name], value, name, path, count)
        if on_batch:
            on_batch(batch, count, size)
        count += len(records)
        size += sum(16 + len(record) for record in records.numpy())
    return count


def _count_unlisted(path: str, schema: dict, vocab_size: int) -> int:
    masks: list[bool] = []

    def add(batch, *_):
        masks.append(batch[feature_names.MASKED_LM_WEIGHTS].any())

    count = check_records(path, schema, vocab_size, add)
    if count and not any(masks):
        raise UserError(
            "no token is masked", path=path, fix="make the records again"
        )
    return count


def _check_shard(shard: Shard) -> None:
    try:
        damage = shard_check.check_shard(shard.path, shard.entry)
    except OSError as error:
        damage = f"cannot be read: {error}"
    if damage:
        raise UserError(
            damage,
            path=shard.path,
            fix="make the records again; the run resumes from its checkpoint",
        )


def _check_range(
    values, highest: int, name: str, path: str, first: int
) -> None:
    # Written so that NaN also fails.
    bad = np.argwhere(~((values >= 0) & (values <= highest)))
    if len(bad):
        row, column = bad[0]
        raise UserError(
            f"record {first + row}: {name} has {values[row, column]}",
            path=path,
            expected=f"0 to {highest}",
            fix="pass the config and lengths that the records were made for",
        )


def _raise_mismatch(records, schema, path: str, first: int) -> None:
    """Raises a UserError for the first record that does not fit."""
    for row, record in enumerate(records):
        try:
            example = tf.train.Example.FromString(record)
        except Exception as error:  # protobuf's DecodeError is not public
            raise UserError(
                f"record {first + row}: not a tf.train.Example: {error}",
                path=path,
            ) from None

        for name, (kind, length) in schema.items():
            feature = example.features.feature[name]
            values = (
                feature.int64_list if kind == "int64" else feature.float_list
            )
            if not values.value:
                raise UserError(
                    f"record {first + row}: no {name}",
                    path=path,
                    expected="records of create_pretraining_data.py",
                )

            if len(values.value) != length:
                raise UserError(
                    f"record {first + row}: {name} has "
                    f"{len(values.value)} values",
                    path=path,
                    expected=f"{length}",
                    fix="pass the --max_seq_length and "
                    "--max_predictions_per_seq of the records",
                )
