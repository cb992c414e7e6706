"""The oracle of the distributions equals the original, draw for draw."""

import hashlib
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.data.pretraining.settings import InstanceSettings
from tests.helpers import original_instances
from tests.helpers.pretraining_rows import (
    FIRST,
    numbered,
    unmasked,
    vocabulary,
)
from tests.helpers.text import Segment


def test_instances_equal_those_of_the_original_release():
    """The digest was made with the original create_pretraining_data.py.

    Its create_instances_from_document (PyPI bert-tensorflow 1.0.4, its
    tensorflow removed) ran over these documents as tokens, with the same
    random.Random, and its tokens were turned back into ids.
    """
    rng = random.Random(23)
    documents = [
        [
            [rng.randrange(FIRST, 97) for _ in range(rng.randint(1, 29))]
            for _ in range(rng.randint(1, 13))
        ]
        for _ in range(41)
    ]
    options = InstanceSettings(max_seq_length=31, max_predictions_per_seq=5)
    rng = random.Random(12345)
    rows = [
        [
            x.ids,
            x.segment_ids,
            x.masked_lm_ids,
            x.masked_lm_positions,
            x.is_random_next,
        ]
        for _ in range(3)
        for index in range(len(documents))
        for x in original_instances.create_instances_from_document(
            documents, index, options, vocabulary(97), rng
        )
    ]
    assert len(rows) == 555
    assert hashlib.sha256(json.dumps(rows).encode()).hexdigest() == (
        "617bf063400ac4bd4313dcb4662ab955cec267d19d61f6a8486df6b422aa201f"
    )


class _Stuck(random.Random):
    """Always draws the lowest number of a range."""

    def randint(self, a, b):
        return a


@pytest.mark.parametrize("index", [0, 1, 2])
def test_ten_failed_draws_take_the_next_document(index):
    documents = numbered([[2], [2], [2]])
    (instance,) = original_instances.create_instances_from_document(
        documents,
        index,
        InstanceSettings(max_seq_length=11),
        vocabulary(97),
        _Stuck(3),
    )
    other = 1 if index == 0 else 0
    assert instance.is_random_next
    assert unmasked(instance) == (documents[index][0], documents[other][0])


def one_at_a_time(a, b, max_tokens, rng):
    """Drops one id at a time, as the original does."""
    a, b = list(a), list(b)
    while len(a) + len(b) > max_tokens:
        longer = a if len(a) > len(b) else b
        longer.pop(0 if rng.random() < 0.5 else -1)
    return a, b


LENGTH = st.integers(0, 61)


@settings(deadline=None, max_examples=500, derandomize=True)
@given(LENGTH, LENGTH, st.integers(0, 101), st.integers(0, 2**32))
def test_truncation_equals_dropping_one_at_a_time(a, b, most, seed):
    a, b = list(range(a)), list(range(100, 100 + b))
    fast, slow = random.Random(seed), random.Random(seed)
    assert original_instances.truncate_pair_randomly(a, b, most, fast) == (
        one_at_a_time(a, b, most, slow)
    )
    assert fast.getstate() == slow.getstate()  # the same numbers drawn


@settings(deadline=None, max_examples=500, derandomize=True)
@given(LENGTH, LENGTH, st.integers(0, 101), st.integers(0, 2**32))
def test_truncation_fits_and_shortens_the_longer(a, b, most, seed):
    before = list(range(a)), list(range(100, 100 + b))
    after = original_instances.truncate_pair_randomly(
        *before, most, random.Random(seed)
    )
    lengths = [len(segment) for segment in after]
    assert sum(lengths) == min(a + b, most)
    for whole, part in zip(before, after, strict=True):
        first = whole.index(part[0]) if part else 0
        assert part == whole[first : first + len(part)]
    if lengths[0] < a:
        assert lengths[0] >= lengths[1] - 1
    if lengths[1] < b:
        assert lengths[1] >= lengths[0] - 1


def test_both_ends_are_truncated_about_as_often():
    rng = random.Random(5)
    fronts = 0
    for _ in range(1000):
        a, _ = original_instances.truncate_pair_randomly([0, 1], [], 1, rng)
        fronts += a == [1]
    # Binomial(1000, 1/2): 500 +- 16; five deviations.
    assert 420 <= fronts <= 580


def test_of_a_very_long_segment_only_what_is_kept_is_copied():
    """Deleting ids one at a time would move the rest each time."""
    length = 400_003
    long, short = Segment(range(length)), Segment([7, 8])
    a, b = original_instances.truncate_pair_randomly(
        long, short, 125, random.Random(3)
    )
    assert (long.copied, short.copied) == (123, 2)
    assert list(b) == [7, 8]
    assert list(a) == list(range(a[0], a[0] + 123))
    # Binomial(n, 1/2) is dropped at the front: six deviations of 316.
    assert abs(a[0] - length // 2) < 2000
