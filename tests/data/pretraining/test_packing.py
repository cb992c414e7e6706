"""Packing of several instances into a row."""

import random
from collections import Counter

import numpy as np
import pytest

from bert.data.pretraining import draws, masking, packing
from bert.data.pretraining.settings import InstanceSettings
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
    masks = masking.count_masks(lengths, options)
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
            assert count == masking.count_masks(np.array(len(x.ids)), options)
