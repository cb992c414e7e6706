"""Packing of several instances into a row."""

import random
from collections import Counter

import numpy as np

from data import features
from data.pretraining import instances as pretraining
from data.pretraining import packing
from data.pretraining.settings import InstanceSettings

CLS, SEP, MASK = 2, 3, 4


def instance(first, length, masks):
    ids = [CLS, *range(first, first + length - 3), SEP, SEP]
    return pretraining.Instance(
        ids=ids,
        segment_ids=[0] * (length - 1) + [1],
        is_random_next=bool(first % 2),
        masked_lm_positions=list(range(1, 1 + masks)),
        masked_lm_ids=list(range(first, first + masks)),
    )


def some(count, seed, longest):
    rng = random.Random(seed)
    return [
        instance(1000 * (i + 1) + rng.randrange(2), n, max(1, n // 7))
        for i, n in enumerate(rng.randint(5, longest) for _ in range(count))
    ]


def key(x):
    return (tuple(x.ids), x.is_random_next)


def test_every_instance_is_in_one_row_and_no_row_is_too_full():
    options = InstanceSettings(max_seq_length=211, max_predictions_per_seq=31)
    instances = some(301, 3, 211)
    rows = packing.pack(instances, options, random.Random(1))
    assert Counter(key(x) for row in rows for x in row) == Counter(
        map(key, instances)
    )
    for row in rows:
        assert sum(len(x.ids) for x in row) <= 211
        assert sum(len(x.masked_lm_ids) for x in row) <= 31
        assert len(row) <= packing.max_sequences_per_row(211) == 3


def test_the_first_row_with_enough_space_is_used():
    options = InstanceSettings(max_seq_length=128, max_predictions_per_seq=20)
    instances = some(97, 5, 100)
    rows = packing.pack(instances, options, random.Random(1))
    order = list(instances)
    random.Random(1).shuffle(order)
    expected = []
    for x in order:
        for row in expected:
            tokens = sum(len(y.ids) for y in [*row, x])
            masks = sum(len(y.masked_lm_ids) for y in [*row, x])
            if tokens <= 128 and masks <= 20 and len(row) < 2:
                row.append(x)
                break
        else:
            expected.append([x])
    assert rows == expected
    assert rows == packing.pack(instances, options, random.Random(1))
    assert rows != packing.pack(instances, options, random.Random(2))


def test_short_instances_fill_the_rows():
    options = InstanceSettings(max_seq_length=512, max_predictions_per_seq=77)
    instances = some(401, 7, 200)
    rows = packing.pack(instances, options, random.Random(1))
    tokens = sum(len(x.ids) for x in instances)
    assert tokens / (len(rows) * 512) > 0.95


def test_nothing_is_packed_into_no_rows():
    assert packing.pack([], InstanceSettings(), random.Random(1)) == []


def test_rows_are_joined_and_padded():
    options = InstanceSettings(max_seq_length=13, max_predictions_per_seq=3)
    rows = [[instance(11, 5, 1), instance(20, 6, 2)], [instance(31, 7, 1)]]
    arrays = packing.to_arrays(rows, options)
    assert {name: array.tolist() for name, array in arrays.items()} == {
        "input_ids": [
            [2, 11, 12, 3, 3, 2, 20, 21, 22, 3, 3, 0, 0],
            [2, 31, 32, 33, 34, 3, 3, 0, 0, 0, 0, 0, 0],
        ],
        "input_mask": [[1] * 11 + [0] * 2, [1] * 7 + [0] * 6],
        "segment_ids": [
            [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0],
            [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0],
        ],
        "masked_lm_positions": [[1, 6, 7], [1, 0, 0]],
        "masked_lm_ids": [[11, 20, 21], [31, 0, 0]],
        "masked_lm_weights": [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]],
        "next_sentence_labels": [[1, 0], [1, 0]],
        "position_ids": [
            [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 0, 0],
            [0, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0],
        ],
        "sequence_ids": [
            [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 0, 0],
            [1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0],
        ],
        "next_sentence_positions": [[0, 5], [0, 0]],
        "next_sentence_weights": [[1.0, 1.0], [1.0, 0.0]],
    }
    schema = features.packed_schema(13, 3, 2)
    assert list(arrays) == list(schema)
    for name, (kind, length) in schema.items():
        assert arrays[name].dtype == np.dtype(kind)
        assert arrays[name].shape == (2, length)
