"""Tokenized examples of a task on disk, and in memory without padding.

    output_dir/
        train.tf_record         padded examples, in the original's format
        train.tf_record.json    the settings they were made with; written last

In memory an example is a dict, name -> numbers: `input_ids` and `segment_ids`
without padding, or a list of those for each choice; other features as in the
schema. There is no `input_mask`: it follows from the lengths.
"""

import itertools
import json
from collections.abc import Iterable, Iterator

import numpy as np
import tensorflow as tf

from bert.common import storage
from bert.common.errors import UserError
from bert.common.storage import write_whole
from bert.data import features
from bert.data.records import encoding, pipelines
from bert.data.records.encoding import Feature, Schema

_AT_ONCE = 1024


INPUTS = {name: Feature(sequence=True) for name in features.ENCODER_INPUTS}


def write(
    path: str,
    examples: Iterable[dict],
    schema: Schema,
    max_seq_length: int,
    settings: dict,
    choices: int = 1,
) -> int:
    """Writes a file of examples, completely or not at all.

    Args:
        path: the file; an existing file is replaced.
        examples: examples (see above) of at most `max_seq_length` tokens.
        schema: features besides the encoder's inputs.
        max_seq_length: S of the file.
        settings: JSON values that the examples depend on, for
            `current_count`.
        choices: number of sequences per example.

    Returns:
        The number of examples.

    Raises:
        UserError: the disk is full or cannot be written.
    """
    count, examples = 0, iter(examples)
    if storage.exists(_sidecar(path)):
        storage.remove(_sidecar(path))
    with storage.whole_file(path) as temporary:
        with tf.io.TFRecordWriter(temporary) as writer:
            while batch := list(itertools.islice(examples, _AT_ONCE)):
                arrays = _padded(batch, schema, max_seq_length, choices)
                for record in encoding.encode_examples(arrays):
                    writer.write(record)
                count += len(batch)
        digest = storage.hash_file(temporary)
    described = {"settings": settings, "records": count, "sha256": digest}
    write_whole(_sidecar(path), json.dumps(described, indent=2) + "\n")
    return count


def current_count(path: str, settings: dict) -> int | None:
    """Number of examples in a file, if it is whole and has these settings."""
    try:
        with storage.open_text(_sidecar(path)) as file:
            described = json.load(file)
        if described["settings"] == json.loads(json.dumps(settings)):
            intact = storage.hash_file(path) == described["sha256"]
            return described["records"] if intact else None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def read(
    path: str, schema: Schema, max_seq_length: int, choices: int = 1
) -> Iterator[dict]:
    """Yields the examples of a file, with one batch in memory at a time.

    Args:
        path, schema, max_seq_length, choices: as for `write`.

    Raises:
        UserError: the file is damaged or has other features.
    """
    for batch in _parsed(path, schema, max_seq_length, choices):
        yield from _stripped(batch, schema)


def load(
    path: str, schema: Schema, max_seq_length: int, choices: int = 1
) -> "Examples":
    """Loads the examples of a file.

    Args:
        path, schema, max_seq_length, choices: as for `write`.

    Raises:
        UserError: the file is damaged or has other features.
    """
    examples = read(path, schema, max_seq_length, choices)
    return Examples(examples, schema, choices)


class Examples:
    """Examples in memory, for batches in any order.

    The values of all examples stand one after the other in one array for each
    feature.

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
        blocks = {
            name: [np.zeros(0, _kind(feature))]
            for name, feature in self._schema.items()
        }
        sizes = [np.zeros(0, np.int32)]
        examples = iter(examples)
        while some := list(itertools.islice(examples, _AT_ONCE)):
            found = self._flatten(some)
            sizes.append(found.pop(features.INPUT_MASK))
            for name, values in found.items():
                blocks[name].append(values)
        self._values = {  # each block is freed when it is copied
            name: np.concatenate(blocks.pop(name)) for name in self._schema
        }
        sizes = np.concatenate(sizes)
        self._ends = np.cumsum(sizes, dtype=np.int64)
        self._sizes = sizes
        self.lengths = sizes.reshape(-1, choices).max(1)

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
        shape = (len(chosen), length)
        if self.choices > 1:
            shape = (len(chosen), self.choices, length)
        first = np.asarray(chosen)[:, np.newaxis] * self.choices
        parts = (first + np.arange(self.choices)).ravel()
        sizes = self._sizes[parts]
        starts = self._ends[parts] - sizes
        mask = np.arange(length) < sizes[:, np.newaxis]
        indices = (starts[:, np.newaxis] + np.arange(length))[mask]
        arrays = {}
        for name, feature in self._schema.items():
            values = self._values[name]
            if feature.sequence:
                padded = np.zeros(mask.shape, values.dtype)
                padded[mask] = values[indices]
                arrays[name] = padded.reshape(shape)
            else:
                rows = values.reshape(-1, feature.size)[chosen]
                arrays[name] = rows[:, 0] if feature.size == 1 else rows
            if name == features.INPUT_IDS:
                mask_values = mask.astype(np.int32).reshape(shape)
                arrays[features.INPUT_MASK] = mask_values
        return arrays

    def _flatten(self, some: list[dict]) -> dict[str, np.ndarray]:
        """Joins the values of examples; the input mask holds the sizes."""
        arrays = {}
        for name, feature in self._schema.items():
            rows = [example[name] for example in some]
            if feature.sequence and self.choices > 1:
                rows = list(itertools.chain.from_iterable(rows))
            sizes = np.array([len(row) for row in rows], np.int32)
            if name == features.INPUT_IDS:
                arrays[features.INPUT_MASK] = sizes
            expected = feature.size
            if feature.sequence:
                expected = arrays[features.INPUT_MASK]
            assert (sizes == expected).all(), name
            rows = [np.asarray(row, _kind(feature)) for row in rows]
            arrays[name] = np.concatenate(rows)
        return arrays


def _parsed(
    path: str, schema: Schema, max_seq_length: int, choices: int
) -> Iterator[dict]:
    """Yields the features of a batch of records."""
    shape = [choices, max_seq_length][choices == 1 :]
    parsing = {
        name: tf.io.FixedLenFeature(
            shape if feature.sequence else [feature.size], feature.kind
        )
        for name, feature in {**INPUTS, **schema}.items()
    }
    dataset = tf.data.TFRecordDataset(path).batch(_AT_ONCE)
    dataset = dataset.map(lambda x: tf.io.parse_example(x, parsing))
    dataset = pipelines.without_autotuning(dataset.prefetch(1))
    try:
        yield from dataset.as_numpy_iterator()
    except tf.errors.OpError as error:
        raise storage.as_storage_error(error) or UserError(
            f"cannot be read: {error.message}",
            path=path,
            fix="remove it: the next run writes it again",
        ) from None


def _kind(feature: Feature) -> str:
    return feature.kind.replace("int64", "int32")


def _padded(examples, schema, length, choices) -> dict[str, np.ndarray]:
    """Arrays of a file's records, with the features in their order."""
    count = len(examples)
    examples = Examples(examples, schema, choices)
    batch = examples.batch(np.arange(count), length)
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
            name: _strip(values[index], length)
            if known[name].sequence
            else values[index]
            for name, values in batch.items()
        }


def _strip(values, length):
    """Removes the padding of values [S], or of each choice of [C, S]."""
    if values.ndim == 1:
        return values[:length]
    return [row[:count] for row, count in zip(values, length)]


def _sidecar(path: str) -> str:
    return f"{path}.json"
