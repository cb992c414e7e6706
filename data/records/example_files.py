"""Tokenized examples of a task on disk, and in memory without padding.

    output_dir/
        train.tf_record         padded rows, as the original writes them
        train.tf_record.json    what they were made from; written last

In memory a row is a dict, name -> numbers: `input_ids` and `segment_ids` as
long as the text is, or a list of those for each choice; other features as
the schema says. `input_mask` is left out: it follows from the lengths.
"""

import dataclasses
import itertools
import json
import os
from collections.abc import Iterable, Iterator

import numpy as np
import tensorflow as tf

from common import storage
from common.errors import UserError
from common.storage import sync_and_hash, write_whole
from data import features, sequences
from data.records import pipelines
from data.records import writer as records

_AT_ONCE = 1024


@dataclasses.dataclass(frozen=True)
class Feature:
    """One feature of a record.

    Attributes:
        kind: "int64" or "float32".
        sequence: one value a piece, padded with 0.
        size: how many values, if not `sequence`.
    """

    kind: str = "int64"
    sequence: bool = False
    size: int = 1


Schema = dict[str, Feature]
INPUTS = {name: Feature(sequence=True) for name in features.ENCODER_INPUTS}


def write(
    path: str,
    rows: Iterable[dict],
    schema: Schema,
    max_seq_length: int,
    settings: dict,
) -> int:
    """Writes rows, whole or not at all.

    Args:
        path: the file; one that is there is replaced.
        rows: see above; at most `max_seq_length` pieces each.
        schema: features besides the encoder's inputs.
        max_seq_length: S of the file.
        settings: JSON values that the rows depend on, for `current_count`.

    Returns:
        the number of rows.

    Raises:
        UserError: the disk is full or cannot be written.
    """
    count, rows, temporary = 0, iter(rows), f"{path}.partial"
    try:
        if storage.exists(_sidecar(path)):
            os.remove(_sidecar(path))
        with tf.io.TFRecordWriter(temporary) as writer:
            while some := list(itertools.islice(rows, _AT_ONCE)):
                arrays = _padded(some, schema, max_seq_length)
                for record in records.encode_examples(arrays):
                    writer.write(record)
                count += len(some)
        digest = sync_and_hash(temporary)
        storage.replace(temporary, path)
        described = {"settings": settings, "records": count, "sha256": digest}
        write_whole(_sidecar(path), json.dumps(described, indent=2) + "\n")
    except (OSError, tf.errors.OpError) as error:
        raise UserError(
            f"cannot be written: {getattr(error, 'message', error)}",
            path=path,
            fix="check the path, its permissions and the free space",
        ) from None
    return count


def current_count(path: str, settings: dict) -> int | None:
    """Rows of a file that was made with these settings; None: make it."""
    try:
        with open(_sidecar(path), encoding="utf-8") as file:
            described = json.load(file)
        if described["settings"] == json.loads(json.dumps(settings)):
            intact = sync_and_hash(path) == described["sha256"]
            return described["records"] if intact else None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def read(path: str, schema: Schema, max_seq_length: int) -> Iterator[dict]:
    """Yields the rows of a file, a batch of them in memory at a time.

    Args:
        path, schema, max_seq_length: as they were written.

    Raises:
        UserError: the file is damaged or has other features.
    """
    parsing = {
        name: tf.io.FixedLenFeature(
            [max_seq_length if feature.sequence else feature.size], feature.kind
        )
        for name, feature in {**INPUTS, **schema}.items()
    }
    dataset = tf.data.TFRecordDataset(path).batch(_AT_ONCE)
    dataset = dataset.map(lambda x: tf.io.parse_example(x, parsing))
    dataset = pipelines.untuned(dataset.prefetch(1))
    try:
        for batch in dataset.as_numpy_iterator():
            yield from _stripped(batch, schema)
    except tf.errors.OpError as error:
        raise UserError(
            f"cannot be read: {error.message}",
            path=path,
            fix="remove it: it is made again",
        ) from None


class Rows:
    """Rows in memory, ready for batches in any order.

    Args:
        rows: see above.
        schema: features besides the encoder's inputs.
        choices: sequences of a row.

    Attributes:
        lengths: int32 [N], pieces of the row; of its longest choice.
    """

    def __init__(self, rows: Iterable[dict], schema: Schema, choices: int = 1):
        self.choices = choices
        self._schema = {**INPUTS, **schema}
        del self._schema[features.INPUT_MASK]
        parts = {name: [] for name in self._schema}
        for row in rows:
            for name, feature in self._schema.items():
                kind = feature.kind.replace("int64", "int32")
                value = row[name]
                if not feature.sequence or choices == 1:
                    value = [value]
                parts[name].append([np.array(x, kind) for x in value])
        self._columns = parts
        self.lengths = np.array(
            [max(map(len, x)) for x in parts[features.INPUT_IDS]], np.int32
        )

    def __len__(self):
        return len(self.lengths)

    def batch(self, chosen: np.ndarray, length: int) -> dict[str, np.ndarray]:
        """The rows of these numbers.

        Args:
            chosen: B numbers of rows.
            length: S, at least that of the longest.

        Returns:
            name -> [B, S], or [B, C, S] with C > 1 choices; features that
            are no sequence: [B], or [B, size].
        """
        arrays = {}
        for name, feature in self._schema.items():
            rows = [x for i in chosen for x in self._columns[name][i]]
            if not feature.sequence:
                stacked = np.stack(rows)
                one = feature.size == 1
                arrays[name] = stacked[:, 0] if one else stacked
                continue
            kind = feature.kind.replace("int64", "int32")
            arrays[name] = sequences.pad_rows(rows, length, kind)
            if name == features.INPUT_IDS:
                mask = [np.ones(len(x), np.int32) for x in rows]
                arrays[features.INPUT_MASK] = sequences.pad_rows(
                    mask, length, np.int32
                )
        if self.choices > 1:
            shape = (len(chosen), self.choices, length)
            for name, array in arrays.items():
                if name == features.INPUT_MASK or self._schema[name].sequence:
                    arrays[name] = array.reshape(shape)
        return arrays


def _padded(rows, schema, length) -> dict[str, np.ndarray]:
    """The arrays of a file's records, features in their order."""
    batch = Rows(rows, schema).batch(np.arange(len(rows)), length)
    return {
        name: batch[name].reshape(len(rows), -1).astype(feature.kind)
        for name, feature in {**INPUTS, **schema}.items()
    }


def _stripped(batch, schema) -> Iterator[dict]:
    """The rows of a parsed batch without their padding."""
    lengths = batch.pop(features.INPUT_MASK).sum(-1)
    known = {**INPUTS, **schema}
    for index, length in enumerate(lengths):
        yield {
            name: values[index, :length]
            if known[name].sequence
            else values[index]
            for name, values in batch.items()
        }


def _sidecar(path: str) -> str:
    return f"{path}.json"
