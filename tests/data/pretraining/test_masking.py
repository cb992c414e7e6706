"""Masking: chosen positions and their new tokens."""

import dataclasses
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.data import feature_names
from bert.data.pretraining import draws, masking
from bert.data.pretraining.settings import InstanceSettings
from tests.helpers.pretraining_rows import CLS, FIRST, SEP, padded, vocabulary


def mask_all(rows, options, known, seed=1):
    """Masks rows of one instance each: (ids, positions, labels) of each."""
    length = max(map(len, rows))
    masked = masking.mask_rows(
        padded(rows, length, np.int32),
        padded([[1] * len(row) for row in rows], length, np.int64),
        options,
        known,
        lambda columns: draws.rows((seed,), 0, len(rows), columns),
    )
    found = []
    for row, ids, positions, labels, weights in zip(
        rows,
        masked[feature_names.INPUT_IDS],
        masked[feature_names.MASKED_LM_POSITIONS],
        masked[feature_names.MASKED_LM_IDS],
        masked[feature_names.MASKED_LM_WEIGHTS],
        strict=True,
    ):
        count = int(weights.sum())
        assert weights.tolist() == [1.0] * count + [0.0] * (
            options.max_predictions_per_seq - count
        )
        assert not positions[count:].any() and not labels[count:].any()
        assert not ids[len(row) :].any()
        found.append(
            (
                ids[: len(row)].tolist(),
                positions[:count].tolist(),
                labels[:count].tolist(),
            )
        )
    return found


def mask_one(row, options, known, seed=1):
    return mask_all([row], options, known, seed)[0]


def wanted(length, options):
    share = int(round(length * options.masked_lm_prob))
    return min(options.max_predictions_per_seq, max(1, share))


def test_vocabulary_knows_special_tokens_and_continuations():
    lines = ["[PAD]", "[MASK]", "[SEP]", "a", "##a", "[CLS]", "#", "##"]
    vocab = {token: i for i, token in enumerate(lines)}
    found = masking.Vocabulary.of(vocab)
    assert (found.size, found.cls_id, found.sep_id, found.mask_id) == (
        *(8, 5, 2, 1),
    )
    assert np.flatnonzero(found.continues).tolist() == [4, 7]


def test_random_tokens_come_from_the_whole_vocabulary():
    seen = set()
    row = [CLS, *[FIRST] * 997, SEP]
    options = InstanceSettings(masked_lm_prob=1.0, max_predictions_per_seq=997)
    for ids, positions, _ in mask_all([row] * 7, options, vocabulary(97)):
        assert positions == list(range(1, 998))
        seen.update(ids[1:-1])
    assert seen == set(range(97))  # [PAD] and [CLS] too


@pytest.mark.parametrize("whole", [False, True])
def test_all_candidates_may_be_masked(whole):
    rows = [[CLS, *[FIRST] * n, SEP, *[FIRST] * 2, SEP] for n in (7, 1, 3)]
    options = InstanceSettings(masked_lm_prob=1.0, do_whole_word_mask=whole)
    for row, (_, positions, _) in zip(
        rows, mask_all(rows, options, vocabulary(97)), strict=True
    ):
        assert positions == [i for i, x in enumerate(row) if x == FIRST]


def test_masks_of_a_row_do_not_depend_on_its_neighbours():
    rng = random.Random(3)
    rows = [
        [CLS, *(rng.randrange(FIRST, 97) for _ in range(60)), SEP]
        for _ in range(31)
    ]
    for options in (
        InstanceSettings(),
        InstanceSettings(do_whole_word_mask=True, max_ngram=3),
    ):
        known = vocabulary(97, range(FIRST, 97, 3))
        whole = mask_all(rows, options, known)
        for changed in range(31):
            others = [[CLS, *[FIRST] * 60, SEP]] * 31
            others[changed] = rows[changed]
            found = mask_all(others, options, known)
            assert found[changed] == whole[changed]


@settings(deadline=None, max_examples=100, derandomize=True)
@given(
    st.lists(st.sampled_from([5, 5, 7, SEP]), min_size=1, max_size=53),
    st.sampled_from([1, 2, 5, 11]),
    st.integers(0, 1 << 31),
)
def test_words_are_masked_whole_or_not_at_all(body, most, seed):
    continuation = 7
    row = [CLS, *body, 5, SEP]
    options = InstanceSettings(
        max_predictions_per_seq=most,
        masked_lm_prob=0.3,
        do_whole_word_mask=True,
    )
    _, positions, labels = mask_one(
        row, options, vocabulary(97, [continuation]), seed
    )
    words = []
    for position, token in enumerate(row):
        if token == continuation and words:
            words[-1].add(position)
        elif token not in (CLS, SEP):
            words.append({position})
    left = wanted(len(row), options) - len(positions)
    assert left >= 0
    assert [row[position] for position in positions] == labels
    for word in words:
        assert word <= set(positions) or not word & set(positions)
        # A word is skipped if it has more tokens than are still wanted.
        assert word <= set(positions) or len(word) > left


def test_tokens_are_masked_one_by_one_without_whole_words():
    # 1 of 5 tokens of one word.
    row = [CLS, 5, 7, 7, 7, 7, SEP]
    options = InstanceSettings()
    _, positions, _ = mask_one(row, options, vocabulary(97, [7]))
    assert len(positions) == 1
    whole = dataclasses.replace(options, do_whole_word_mask=True)
    _, positions, _ = mask_one(row, whole, vocabulary(97, [7]))
    assert positions == []  # five tokens do not fit one mask


@settings(deadline=None, max_examples=100, derandomize=True)
@given(
    st.lists(st.sampled_from([5, 5, 7, SEP]), min_size=1, max_size=53),
    st.integers(2, 5),
    st.booleans(),
    st.integers(0, 1 << 31),
)
def test_spans_hold_whole_words_of_one_segment(body, ngram, whole, seed):
    continuation = 7
    row = [CLS, 5, *body, 5, SEP]
    options = InstanceSettings(
        max_predictions_per_seq=11,
        masked_lm_prob=0.3,
        do_whole_word_mask=whole,
        max_ngram=ngram,
    )
    known = vocabulary(97, [continuation])
    masked, positions, labels = mask_one(row, options, known, seed)
    again = mask_one(row, options, known, seed)
    assert again == (masked, positions, labels)
    assert positions == sorted(set(positions))
    assert len(positions) <= wanted(len(row), options)
    there = len(row) - row.count(CLS) - row.count(SEP)
    if not whole:
        assert len(positions) == min(there, wanted(len(row), options))
    assert [row[position] for position in positions] == labels
    assert not {CLS, SEP} & set(labels)
    if whole:
        chosen = set(positions)
        for position in range(2, len(row)):
            if row[position] == continuation and row[position - 1] != SEP:
                assert (position in chosen) == (position - 1 in chosen)


def test_spans_do_not_cross_a_separator():
    row = [CLS, 5, SEP, 5, SEP]
    options = InstanceSettings(max_ngram=2, masked_lm_prob=1.0)
    firsts = Counter()
    for seed in range(101):
        options = dataclasses.replace(options, max_predictions_per_seq=1)
        _, positions, _ = mask_one(row, options, vocabulary(97), seed)
        firsts.update(positions)
    assert set(firsts) == {1, 3}


def test_marked_tokens_are_masked_with_their_word():
    size = 97
    row = [CLS, 5, 6 + size, 7 + size, 8, SEP, 9, 10 + size, SEP]
    options = InstanceSettings(
        do_whole_word_mask=True, word_boundaries=True, masked_lm_prob=0.34
    )
    plain = [token % size for token in row]
    seen = set()
    for seed in range(53):
        masked, positions, labels = mask_one(
            row, options, vocabulary(size), seed
        )
        assert max(masked) < size
        assert labels == [plain[position] for position in positions]
        seen.add(tuple(positions))
    assert seen == {(1, 2, 3), (4, 6, 7)}
