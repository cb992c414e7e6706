"""Joining, truncation and padding of segments."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data import sequences
from tests.helpers.text import Segment

CLS, SEP = 2, 3


def test_pair_is_joined_as_drawn():
    ids, segments = sequences.join_pair([11, 12, 13], [21, 22], CLS, SEP)
    assert ids == [2, 11, 12, 13, 3, 21, 22, 3]
    assert segments == [0, 0, 0, 0, 0, 1, 1, 1]


def test_one_segment_has_one_separator():
    ids, segments = sequences.join_pair([11, 12], [], CLS, SEP)
    assert ids == [2, 11, 12, 3]
    assert segments == [0, 0, 0, 0]


def test_joining_does_not_change_its_arguments():
    a, b = [11], [21]
    sequences.join_pair(a, b, CLS, SEP)
    assert (a, b) == ([11], [21])


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_rows_are_padded_with_zeros(dtype):
    padded = sequences.pad_rows([[5, 7], [], [1, 2, 3]], 3, dtype)
    assert padded.dtype == dtype
    assert padded.tolist() == [
        [5, 7, 0],
        [0, 0, 0],
        [1, 2, 3],
    ]


def test_a_row_that_is_too_long_is_an_error():
    with pytest.raises(ValueError):
        sequences.pad_rows([[1, 2, 3, 4]], 3, np.int64)


def test_no_rows_give_an_empty_array():
    assert sequences.pad_rows([], 5, np.int64).shape == (0, 5)


@pytest.mark.parametrize("max_tokens", [1, 2, 5, 8, 13])
def test_the_longer_segment_is_truncated_at_its_end(max_tokens):
    for a in (list(range(10, 10 + i)) for i in range(9)):
        for b in (list(range(30, 30 + i)) for i in range(9)):
            first, second = list(a), list(b)
            while len(first) + len(second) > max_tokens:
                (first if len(first) > len(second) else second).pop()
            found = sequences.truncate_pair(a, b, max_tokens)
            assert found == (first, second)


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
    assert sequences.truncate_pair_randomly(a, b, most, fast) == (
        one_at_a_time(a, b, most, slow)
    )
    assert fast.getstate() == slow.getstate()  # the same numbers drawn


@settings(deadline=None, max_examples=500, derandomize=True)
@given(LENGTH, LENGTH, st.integers(0, 101), st.integers(0, 2**32))
def test_truncation_fits_and_shortens_the_longer(a, b, most, seed):
    before = list(range(a)), list(range(100, 100 + b))
    after = sequences.truncate_pair_randomly(*before, most, random.Random(seed))
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
        a, _ = sequences.truncate_pair_randomly([0, 1], [], 1, rng)
        fronts += a == [1]
    # Binomial(1000, 1/2): 500 +- 16; five deviations.
    assert 420 <= fronts <= 580


def test_of_a_very_long_segment_only_what_is_kept_is_copied():
    """Deleting ids one at a time would move the rest each time."""
    length = 400_003
    long, short = Segment(range(length)), Segment([7, 8])
    a, b = sequences.truncate_pair_randomly(long, short, 125, random.Random(3))
    assert (long.copied, short.copied) == (123, 2)
    assert list(b) == [7, 8]
    assert list(a) == list(range(a[0], a[0] + 123))
    # Binomial(n, 1/2) is dropped at the front: six deviations of 316.
    assert abs(a[0] - length // 2) < 2000
