"""Joining and truncation of segments."""

import numpy as np
import pytest

from bert.common.errors import UserError
from bert.data import sequences
from bert.data.sequences import MAX, MEAN, LongTexts

CLS, SEP = 2, 3


@pytest.mark.parametrize(
    ("truncate", "kept"),
    [
        ("head", [10, 11, 12, 13, 14, 15]),
        ("tail", [14, 15, 16, 17, 18, 19]),
        ("head_tail", [10, 11, 16, 17, 18, 19]),
    ],
)
def test_of_a_longer_segment_other_tokens_can_be_kept(truncate, kept):
    a, b = list(range(10, 20)), [30, 31, 32]
    assert sequences.truncate_pair(a, b, 9, truncate) == (kept, b)
    assert sequences.truncate_pair(b, a, 9, truncate) == (b, kept)
    assert sequences.truncate_pair(a, b, 13, truncate) == (a, b)
    assert sequences.truncate_pair(a, b, 2, truncate)[0] in ([10], [19])


def test_head_and_tail_are_those_of_sun_et_al():
    assert sequences.kept_at_start(510, "head_tail") == 128


def test_windows_as_drawn():
    #  0 1 2 3 4 5
    #        3 4 5 6 7 8
    #              6 7 8 9
    assert sequences.cut(10, 6, 3) == [(0, 6), (3, 6), (6, 4)]
    assert sequences.cut(6, 6, 3) == [(0, 6)]
    assert sequences.cut(7, 3, 11) == [(0, 3), (3, 3), (6, 1)]
    assert sequences.cut(0, 6, 3) == []


@pytest.mark.parametrize(
    ("count", "windows"),
    [
        (0, [[101, 102]]),
        (5, [[101, *range(5), 102]]),
        (6, [[101, *range(5), 102], [101, 3, 4, 5, 102]]),
    ],
)
def test_a_long_text_has_windows(count, windows):
    long_texts = LongTexts("tail", MEAN, 3)
    rows = long_texts.rows([*range(count)], [], 7, 101, 102)
    assert [ids for ids, _ in rows] == windows
    assert all(segments == [0] * len(ids) for ids, segments in rows)
    truncated = long_texts.without_windows()
    ((ids, _),) = truncated.rows([*range(count)], [], 7, 101, 102)
    assert ids == [101, *range(max(0, count - 5), count), 102]


@pytest.mark.parametrize("pool", [MEAN, MAX])
def test_logits_of_windows_are_pooled_by_text(pool):
    counts = [1, 5, 1, 1, 3]
    logits = np.random.default_rng(3).normal(size=(11, 2)).astype("f4")
    parts = np.split(logits, np.cumsum(counts)[:-1])
    expected = [getattr(np, pool)(part, axis=0) for part in parts]
    pooled = LongTexts(pool=pool).pooled(logits, counts)
    np.testing.assert_allclose(pooled, expected, rtol=1e-6)

    # Texts that fit keep their bits.
    alone = LongTexts(pool=pool).pooled(logits, [1] * 11)
    np.testing.assert_array_equal(alone, logits)


def test_pairs_have_no_windows():
    with pytest.raises(UserError, match="^pairs of texts, and long texts in"):
        LongTexts(pool=MEAN, stride=3).rows([5], [7], 7, CLS, SEP)
