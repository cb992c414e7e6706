"""Several instances in a row, so that little of it is padding.

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
from data.pretraining.instances import Instance, instance_rows
from data.pretraining.settings import InstanceSettings


def max_sequences_per_row(max_seq_length: int) -> int:
    """K, so many instances are in a row at most."""
    return max(2, max_seq_length // 64)


def pack(
    instances: list[Instance], settings: InstanceSettings, rng: random.Random
) -> list[list[Instance]]:
    """Puts each instance into the first row that has room for it.

    Room is that of S pieces, P masked places and K instances.

    Args:
        instances: in any order; they are shuffled, so that neighbours of the
            corpus are not neighbours in a row.
        settings: S and P.
        rng: of the order.

    Returns:
        the instances of each row.
    """
    instances = list(instances)
    rng.shuffle(instances)
    room = np.array(
        [
            settings.max_seq_length,
            settings.max_predictions_per_seq,
            max_sequences_per_row(settings.max_seq_length),
        ]
    )
    left = np.tile(room, (len(instances), 1))  # of row: pieces, masks, places
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
        name -> `int64` or `float32 [N, length]`.
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
    """One row of several instances."""
    lengths = [len(x.ids) for x in instances]
    starts = [0, *itertools.accumulate(lengths)][:-1]
    row: dict[str, list] = {}
    for number, (start, instance) in enumerate(zip(starts, instances), 1):
        length = len(instance.ids)
        part = {
            **instance_rows(instance),
            features.MASKED_LM_POSITIONS: [
                start + place for place in instance.masked_lm_positions
            ],
            features.POSITION_IDS: list(range(length)),
            features.SEQUENCE_IDS: [number] * length,
            features.NEXT_SENTENCE_POSITIONS: [start],
            features.NEXT_SENTENCE_WEIGHTS: [1.0],
        }
        for name, values in part.items():
            row.setdefault(name, []).extend(values)
    return row
