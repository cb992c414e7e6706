"""Tokenized examples of a task on disk, and in memory without padding.

    output_dir/
        train.tf_record         padded examples, in the original's format
        train.tf_record.json    the settings they were made with; written last

In memory an example is a dict, name -> numbers: `input_ids` and `segment_ids`
without padding, or a list of those for each choice; other features as in the
schema. There is no `input_mask`: it follows from the lengths.
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
from data.records import encoding, pipelines

_AT_ONCE = 1024


@dataclasses.dataclass(frozen=True)
class Feature:
    """One feature of a record.

    Attributes:
        kind: "int64" or "float32".
        sequence: whether it has one value per token, padded with 0.
        size: number of values, if not `sequence`.
    """

    kind: str = "int64"
    sequence: bool = False
    size: int = 1


Schema = dict[str, Feature]
INPUTS = {name: Feature(sequence=True) for name in features.ENCODER_INPUTS}


def write(
    path: str,
    examples: Iterable[dict],
    schema: Schema,
    max_seq_length: int,
    settings: dict,
) -> int:
    """Writes a file of examples, completely or not at all.

    Args:
        path: the file; an existing file is replaced.
        examples: examples (see above) of at most `max_seq_length` tokens.
        schema: features besides the encoder's inputs.
        max_seq_length: S of the file.
        settings: JSON values that the examples depend on, for
            `current_count`.

    Returns:
        The number of examples.

    Raises:
        UserError: the disk is full or cannot be written.
    """
    count, examples, temporary = 0, iter(examples), f"{path}.partial"
    try:
        if storage.exists(_sidecar(path)):
            os.remove(_sidecar(path))
        with tf.io.TFRecordWriter(temporary) as writer:
            while batch := list(itertools.islice(examples, _AT_ONCE)):
                arrays = _padded(batch, schema, max_seq_length)
                for record in encoding.encode_examples(arrays).to_list():
                    writer.write(record)
                count += len(batch)
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
    """Number of examples in a file, if it is whole and has these settings."""
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
    """Yields the examples of a file, with one batch in memory at a time.

    Args:
        path, schema, max_seq_length: as for `write`.

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
    dataset = pipelines.without_autotuning(dataset.prefetch(1))
    try:
        for batch in dataset.as_numpy_iterator():
            yield from _stripped(batch, schema)
    except tf.errors.OpError as error:
        raise UserError(
            f"cannot be read: {error.message}",
            path=path,
            fix="remove it: the next run writes it again",
        ) from None


class Examples:
    """Examples in memory, for batches in any order.

    Args:
        examples: examples (see above).
        schema: features besides the encoder's inputs.
        choices: number of sequences per example.

    Attributes:
        lengths: int32 [N], number of tokens of each example, or of its longest
            choice.
    """

    def __init__(
        self, examples: Iterable[dict], schema: Schema, choices: int = 1
    ):
        self.choices = choices
        self._schema = {**INPUTS, **schema}
        del self._schema[features.INPUT_MASK]
        parts = {name: [] for name in self._schema}
        for example in examples:
            for name, feature in self._schema.items():
                kind = feature.kind.replace("int64", "int32")
                value = example[name]
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
        """Pads the chosen examples to a batch.

        Args:
            chosen: int [B], numbers of the examples.
            length: S, at least the length of the longest.

        Returns:
            name -> int32 or float32 [B, S], or [B, C, S] with C > 1 choices;
            features that are not sequences: [B], or [B, size].
        """
        arrays = {}
        for name, feature in self._schema.items():
            values = [x for i in chosen for x in self._columns[name][i]]
            if not feature.sequence:
                stacked = np.stack(values)
                one = feature.size == 1
                arrays[name] = stacked[:, 0] if one else stacked
                continue
            kind = feature.kind.replace("int64", "int32")
            arrays[name] = sequences.pad_rows(values, length, kind)
            if name == features.INPUT_IDS:
                mask = [np.ones(len(x), np.int32) for x in values]
                arrays[features.INPUT_MASK] = sequences.pad_rows(
                    mask, length, np.int32
                )
        if self.choices > 1:
            shape = (len(chosen), self.choices, length)
            for name, array in arrays.items():
                if name == features.INPUT_MASK or self._schema[name].sequence:
                    arrays[name] = array.reshape(shape)
        return arrays


def _padded(examples, schema, length) -> dict[str, np.ndarray]:
    """Arrays of a file's records, with the features in their order."""
    count = len(examples)
    batch = Examples(examples, schema).batch(np.arange(count), length)
    return {
        name: batch[name].reshape(count, -1).astype(feature.kind)
        for name, feature in {**INPUTS, **schema}.items()
    }


def _stripped(batch, schema) -> Iterator[dict]:
    """Yields the examples of a parsed batch, without padding."""
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
