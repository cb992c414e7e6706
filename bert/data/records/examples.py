"""Tokenized examples of a task, in memory and without padding.

An example is a dict, name -> numbers: `input_ids` and `segment_ids` without
padding, or lists with one entry per choice; other features as in the schema.
`input_mask` is not stored, as it follows from the lengths.
"""

import copy
import itertools
from collections.abc import Iterable
from typing import Self

import numpy as np

from bert.data import feature_names
from bert.data.records.encoding import Feature, RecordSchema

_AT_ONCE = 1024
INPUTS = {name: Feature(sequence=True) for name in feature_names.ENCODER_INPUTS}


class Examples:
    """Examples in memory, for batches in any order.

    Each feature is one array with the concatenated values of all examples.

    Args:
        examples: iterable of dict. Examples as in the module's docstring.
        schema: RecordSchema. Features in addition to the encoder's inputs.
        choices: int. Number of sequences per example. Default: 1.

    Attributes:
        choices: int. Number of sequences per example.
        schema: RecordSchema. All stored features.
        lengths: int32 [N]. Number of tokens of each example, or of its longest
            choice.
    """

    def __init__(
        self, examples: Iterable[dict], schema: RecordSchema, choices: int = 1
    ):
        self.choices = choices
        self.schema = {**INPUTS, **schema}
        del self.schema[feature_names.INPUT_MASK]
        blocks = {
            name: [np.zeros(0, _kind(feature))]
            for name, feature in self.schema.items()
        }
        sizes = [np.zeros(0, np.int32)]
        examples = iter(examples)
        while block := list(itertools.islice(examples, _AT_ONCE)):
            arrays = self._flatten(block)
            sizes.append(arrays.pop(feature_names.INPUT_MASK))
            for name, values in arrays.items():
                blocks[name].append(values)

        self._values = {  # each block is freed after it is copied
            name: np.concatenate(blocks.pop(name)) for name in self.schema
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
            chosen: int [B]. Indices of the examples.
            length: int. S, at least the length of the longest chosen example.

        Returns:
            dict. Name -> int32 or float32 [B, S], or [B, C, S] with C > 1
            choices. Features that are not sequences: [B], or [B, size].
        """
        shape = (len(chosen), length)
        if self.choices > 1:
            shape = (len(chosen), self.choices, length)

        # Each choice of an example is a separate sequence.
        first = np.asarray(chosen)[:, np.newaxis] * self.choices
        parts = (first + np.arange(self.choices)).ravel()
        sizes = self._sizes[parts]
        starts = self._ends[parts] - sizes

        # Cells that have tokens, and the indices of these tokens.
        mask = np.arange(length) < sizes[:, np.newaxis]
        indices = (starts[:, np.newaxis] + np.arange(length))[mask]

        arrays = {}
        for name, feature in self.schema.items():
            values = self._values[name]
            if feature.sequence:
                padded = np.zeros(mask.shape, values.dtype)
                padded[mask] = values[indices]
                arrays[name] = padded.reshape(shape)
            else:
                rows = values.reshape(-1, feature.size)[chosen]
                arrays[name] = rows[:, 0] if feature.size == 1 else rows

            if name == feature_names.INPUT_IDS:
                mask_values = mask.astype(np.int32).reshape(shape)
                arrays[feature_names.INPUT_MASK] = mask_values
        return arrays

    def with_feature(
        self, name: str, feature: Feature, values: np.ndarray
    ) -> Self:
        """Returns the examples with another feature, or other values of it.

        Args:
            name: str. Name of the feature.
            feature: Feature. Not a sequence.
            values: [N] or [N, size]. Values of all examples.
        """
        changed = copy.copy(self)
        changed.schema = self.schema | {name: feature}
        values = values.astype(_kind(feature)).reshape(-1)
        changed._values = self._values | {name: values}
        return changed

    def _flatten(self, block: list[dict]) -> dict[str, np.ndarray]:
        """Joins the values of examples; `input_mask` has the sizes."""
        arrays = {}
        for name, feature in self.schema.items():
            rows = [example[name] for example in block]
            if feature.sequence and self.choices > 1:
                rows = list(itertools.chain.from_iterable(rows))

            sizes = np.array([len(row) for row in rows], np.int32)
            if name == feature_names.INPUT_IDS:
                arrays[feature_names.INPUT_MASK] = sizes
            expected = feature.size
            if feature.sequence:
                expected = arrays[feature_names.INPUT_MASK]
            assert (sizes == expected).all(), name

            rows = [np.asarray(row, _kind(feature)) for row in rows]
            arrays[name] = np.concatenate(rows)
        return arrays


def _kind(feature: Feature) -> str:
    return feature.dtype.replace("int64", "int32")
