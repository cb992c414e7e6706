"""Packing of several instances into a row, with little padding.

ids         [CLS] a a [SEP] b [SEP]  [CLS] c [SEP] d d [SEP]  0 0
sequences     1   1 1   1   1   1      2   2   2   2 2   2    0 0
positions     0   1 2   3   4   5      0   1   2   3 4   5    0 0

Packing as in Krell et al. 2021 (arXiv:2107.02027), first-fit in a random
order. Attention must stay inside a sequence.
"""

import itertools
import random

import numpy as np

from data import features, sequences
from data.pretraining.instances import Instance, unpadded_features
from data.pretraining.settings import InstanceSettings


def max_sequences_per_row(max_seq_length: int) -> int:
    """K, the maximum number of instances in a row."""
    return max(2, max_seq_length // 64)


def pack(
    instances: list[Instance], settings: InstanceSettings, rng: random.Random
) -> list[list[Instance]]:
    """Adds each instance to the first row with enough space for it.

    A row has space for S tokens, P masked positions and K instances.

    Args:
        instances: instances in any order; they are shuffled, so that
            neighbours in the corpus are not neighbours in a row.
        settings: S and P.
        rng: source of the order.

    Returns:
        The instances of each row.
    """
    instances = list(instances)
    rng.shuffle(instances)
    capacity = np.array(
        [
            settings.max_seq_length,
            settings.max_predictions_per_seq,
            max_sequences_per_row(settings.max_seq_length),
        ]
    )
    left = np.tile(capacity, (len(instances), 1))  # of each row
    rows: list[list[Instance]] = []
    for instance in instances:
        size = [len(instance.ids), len(instance.masked_lm_ids), 1]
        fits = (left[: len(rows) + 1] >= size).all(axis=1)
        row = int(fits.argmax())
        if row == len(rows):
            rows.append([])
        left[row] -= size
        rows[row].append(instance)
    return rows


def to_arrays(
    rows: list[list[Instance]], settings: InstanceSettings
) -> dict[str, np.ndarray]:
    """Joins and pads rows to the arrays of `features.packed_schema`.

    Returns:
        name -> int64 or float32 [N, length].
    """
    schema = features.packed_schema(
        settings.max_seq_length,
        settings.max_predictions_per_seq,
        max_sequences_per_row(settings.max_seq_length),
    )
    joined = [_join(row) for row in rows]
    return {
        name: sequences.pad_rows(
            [row[name] for row in joined], length, np.dtype(kind)
        )
        for name, (kind, length) in schema.items()
    }


def _join(instances: list[Instance]) -> dict[str, list]:
    """Joins several instances to one row."""
    lengths = [len(x.ids) for x in instances]
    starts = [0, *itertools.accumulate(lengths)][:-1]
    row: dict[str, list] = {}
    for number, (start, instance) in enumerate(zip(starts, instances), 1):
        length = len(instance.ids)
        part = {
            **unpadded_features(instance),
            features.MASKED_LM_POSITIONS: [
                start + position for position in instance.masked_lm_positions
            ],
            features.POSITION_IDS: list(range(length)),
            features.SEQUENCE_IDS: [number] * length,
            features.NEXT_SENTENCE_POSITIONS: [start],
            features.NEXT_SENTENCE_WEIGHTS: [1.0],
        }
        for name, values in part.items():
            row.setdefault(name, []).extend(values)
    return row
