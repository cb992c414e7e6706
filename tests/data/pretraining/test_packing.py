"""Packing of several instances into a row."""

import random
from collections import Counter

import numpy as np
import pytest

from data import features
from data.pretraining import draws, masking, packing
from data.pretraining.instances import Pairs
from data.pretraining.settings import InstanceSettings
from tests.helpers.pretraining_rows import (
    FIRST,
    make_rows,
    numbered,
    to_instances,
    unmasked,
    vocabulary,
)


def some(count, seed, longest):
    rng = random.Random(seed)
    return np.array([rng.randint(5, longest) for _ in range(count)])


def pack(lengths, options, seed=1):
    """Instances of each row."""
    order, ends = packing.pack(lengths, options, draws.generator(seed))
    return [x.tolist() for x in np.split(order, ends)[:-1]]


CASES = [
    (211, 31, 211, 0.15),
    (128, 20, 100, 0.15),
    (512, 77, 200, 0.15),
    (128, 7, 100, 0.15),  # masks are the limit
    (61, 5, 61, 0.0),
]


@pytest.mark.parametrize(("length", "most", "longest", "share"), CASES)
def test_the_first_row_with_enough_space_is_used(length, most, longest, share):
    options = InstanceSettings(
        max_seq_length=length,
        max_predictions_per_seq=most,
        masked_lm_prob=share,
    )
    lengths = some(401, 5, longest)
    masks = masking.count_masks(lengths, options.masks)
    rows = pack(lengths, options)
    order = draws.generator(1).permutation(401).tolist()
    expected = []
    for x in order:
        for row in expected:
            tokens = sum(lengths[y] for y in [*row, x])
            if (
                tokens <= length
                and sum(masks[y] for y in [*row, x]) <= most
                and len(row) < packing.max_sequences_per_row(length)
            ):
                row.append(x)
                break
        else:
            expected.append([x])
    assert rows == expected
    assert any(len(row) > 1 for row in rows)
    assert Counter(x for row in rows for x in row) == Counter(range(401))
    assert rows != pack(lengths, options, seed=2)


def test_short_instances_fill_the_rows():
    options = InstanceSettings(max_seq_length=512, max_predictions_per_seq=77)
    lengths = some(401, 7, 200)
    rows = pack(lengths, options)
    assert lengths.sum() / (len(rows) * 512) > 0.95


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_instances_are_packed(count):
    options = InstanceSettings(max_seq_length=128)
    lengths = np.full(count, 11)
    assert pack(lengths, options) == [list(range(count))][: min(count, 1)] or (
        sorted(pack(lengths, options)[0]) == [0, 1]
    )


def test_packed_rows_hold_whole_instances_with_their_masks():
    rng = random.Random(5)
    documents = numbered(
        [
            [rng.randint(1, 9) for _ in range(rng.randint(1, 7))]
            for _ in range(37)
        ]
    )
    known = vocabulary(FIRST + sum(len(s) for x in documents for s in x))
    options = InstanceSettings(max_seq_length=131, max_predictions_per_seq=19)
    for whole, ngram in ((False, 1), (True, 1), (True, 3)):
        settings = InstanceSettings(
            **{
                **vars(options),
                "pack_sequences": True,
                "do_whole_word_mask": whole,
                "max_ngram": ngram,
            }
        )
        rows = make_rows(documents, settings, known)
        plain = make_rows(documents, options, known)
        found = to_instances(rows)
        assert sorted(map(unmasked, found)) == sorted(
            map(unmasked, to_instances(plain))
        )
        assert len(rows["input_ids"]) < 0.7 * len(found)
        for x in found:
            count = len(x.masked_lm_positions)
            assert count == masking.count_masks(
                np.array(len(x.ids)), options.masks
            )


def test_rows_are_joined_and_padded(monkeypatch):
    documents = numbered([[2, 1], [1, 1], [1, 2]])
    settings = InstanceSettings(
        max_seq_length=13,
        max_predictions_per_seq=3,
        masked_lm_prob=0.0,  # one of each instance
        pack_sequences=True,
    )
    starts, stops = np.array([[0, 5, 3], [2, 6, 4]]), [[2, 6, 4], [3, 7, 5]]
    pairs = Pairs(
        starts[0],
        np.array(stops[0]),
        starts[1],
        np.array(stops[1]),
        np.array([False, True, True]),
    )
    monkeypatch.setattr(
        "data.pretraining.instances.draw_pairs", lambda *_: pairs
    )
    monkeypatch.setattr(
        "data.pretraining.packing.pack",
        lambda *_: (np.array([2, 0, 1]), np.array([2, 3])),
    )
    rows = make_rows(documents, settings, vocabulary(97))
    (one, two), (three,) = (
        to_instances({n: v[i : i + 1] for n, v in rows.items()})
        for i in range(2)
    )
    assert [unmasked(x) for x in (one, two, three)] == [
        ([8], [9]),
        ([5, 6], [7]),
        ([10], [11]),
    ]
    for name in ("input_ids", "masked_lm_positions", "masked_lm_ids"):
        del rows[name]
    assert {name: values.tolist() for name, values in rows.items()} == {
        "input_mask": [[1] * 11 + [0] * 2, [1] * 5 + [0] * 8],
        "segment_ids": [
            [0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0],
            [0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        ],
        "masked_lm_weights": [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
        "next_sentence_labels": [[1, 0], [1, 0]],
        "position_ids": [
            [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 0, 0],
            [0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0],
        ],
        "sequence_ids": [
            [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 0, 0],
            [1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        ],
        "next_sentence_positions": [[0, 5], [0, 0]],
        "next_sentence_weights": [[1.0, 1.0], [1.0, 0.0]],
    }
    assert rows.keys() < features.packed_schema(13, 3, 2).keys()
