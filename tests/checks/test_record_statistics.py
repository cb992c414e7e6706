"""Statistical properties of many instances of a corpus.

Every token of the corpus has an id of its own, so that each row shows where
it came from. Bounds are five standard deviations; the seed is fixed.
"""

import itertools
import random

import numpy as np
import pytest

from data.pretraining.settings import InstanceSettings
from tests.helpers.pretraining_rows import (
    FIRST,
    MASK,
    make_instances,
    unmasked,
    vocabulary,
)

S, P, DOCUMENTS, PASSES = 67, 11, 53, 59


def make_corpus():
    """Documents of about 400 tokens in sentences of 1 to 3."""
    rng = random.Random(7)
    documents, token = [], FIRST
    for _ in range(DOCUMENTS):
        document = []
        for _ in range(199):
            length = rng.randint(1, 3)
            document.append(list(range(token, token + length)))
            token += length
        documents.append(document)
    return documents, token


@pytest.fixture(scope="module")
def made():
    documents, size = make_corpus()
    settings = InstanceSettings(max_seq_length=S, max_predictions_per_seq=P)
    passes = [
        make_instances(documents, settings, vocabulary(size), number=number)
        for number in range(PASSES)
    ]
    assert sum(map(len, passes)) >= 20_000
    return documents, size, passes


@pytest.fixture(scope="module")
def rows(made):
    """Of each instance: (it, segment a, segment b), unmasked."""
    return [(x, *unmasked(x)) for one in made[2] for x in one]


@pytest.fixture(scope="module")
def starts(made):
    """First token of each document."""
    return np.array([document[0][0] for document in made[0]])


def document_of(token, starts):
    return np.searchsorted(starts, token, side="right") - 1


def assert_share(hits, trials, share):
    deviation = np.sqrt(share * (1 - share) / trials)
    assert abs(hits / trials - share) < 5 * deviation, (hits / trials, share)


def test_unmasked_text_is_found_back_in_the_corpus(rows, starts):
    for _, a, b in rows:
        for segment in (a, b):
            assert segment == list(range(segment[0], segment[-1] + 1))
            first, last = document_of([segment[0], segment[-1]], starts)
            assert first == last


def test_next_sentences_follow_or_come_from_another_document(rows, starts):
    for instance, a, b in rows:
        of_a, of_b = document_of([a[0], b[0]], starts)
        if instance.is_random_next:
            assert of_a != of_b
        else:
            assert of_a == of_b and b[0] > a[-1]


def test_half_of_the_next_sentences_are_random(made):
    """Where there is a choice: the last sentence alone has nothing behind.

    A short sequence of one sentence has none either.
    """
    documents, size, _ = made
    settings = InstanceSettings(
        max_seq_length=S, max_predictions_per_seq=P, short_seq_prob=0
    )
    last = {token for document in documents for token in document[-1]}
    rows = [
        x
        for number in range(23)
        for x in make_instances(
            documents, settings, vocabulary(size), number=number
        )
    ]
    free = [x.is_random_next for x in rows if not last & set(unmasked(x)[0])]
    assert len(free) > 0.9 * len(rows) > 5000
    assert_share(sum(free), len(free), 0.5)


def test_rows_fill_the_length_but_for_a_tenth_of_the_documents(
    made, rows, starts
):
    unread = iter(rows)
    short = 0
    for one_pass in made[2]:
        longest = np.zeros(DOCUMENTS, int)
        for instance, a, _ in itertools.islice(unread, len(one_pass)):
            document = document_of(a[0], starts)
            longest[document] = max(longest[document], len(instance.ids))
        short += (longest < S).sum()
    share = short / (DOCUMENTS * PASSES)
    deviation = np.sqrt(0.1 * 0.9 / (DOCUMENTS * PASSES))
    # A short target is 2 to S - 3; one near the end may still fill the row.
    assert 0.1 * (S - 3 - 5) / (S - 3) - 5 * deviation < share
    assert share < 0.1 + 5 * deviation


def test_as_many_are_predicted_as_the_formula_says(rows):
    for instance, _, _ in rows:
        count = min(P, max(1, round(len(instance.ids) * 0.15)))
        assert len(instance.masked_lm_positions) == count
        assert len(set(instance.masked_lm_positions)) == count


def test_special_tokens_are_never_predicted(rows):
    for instance, _, _ in rows:
        assert min(instance.masked_lm_ids) >= FIRST


def test_every_position_is_predicted_as_often(rows):
    """Among full rows with the first [SEP] at the same position."""
    full = [x for x, _, _ in rows if len(x.ids) == S]
    counts, chances = np.zeros(S), np.zeros(S)
    for x in full:
        middle = x.segment_ids.index(1)
        free = np.ones(S, bool)
        free[[0, middle - 1, S - 1]] = False
        chances[free] += len(x.masked_lm_positions) / free.sum()
        counts[x.masked_lm_positions] += 1
    assert counts[0] == counts[-1] == 0
    deviations = (counts - chances)[1:-1] / np.sqrt(chances[1:-1])
    assert np.abs(deviations).max() < 5


def test_80_10_10(made, rows):
    size = made[1]
    masked = kept = total = 0
    replaced = []
    for instance, _, _ in rows:
        for position, label in zip(
            instance.masked_lm_positions, instance.masked_lm_ids
        ):
            total += 1
            if instance.ids[position] == MASK:
                masked += 1
            elif instance.ids[position] == label:
                kept += 1
            else:
                replaced.append(instance.ids[position])
    assert total > 150_000
    assert_share(masked, total, 0.8 + 0.1 / size)
    assert_share(kept, total, 0.1 + 0.1 / size)
    assert_share(len(replaced), total, 0.1)
    # Random tokens are drawn from the whole vocabulary, [PAD] included.
    bins = np.bincount(np.array(replaced) * 101 // size, minlength=101)
    expected = len(replaced) / 101
    chi_square = ((bins - expected) ** 2 / expected).sum()
    assert abs(chi_square - 100) < 5 * np.sqrt(200)
    assert min(replaced) < size // 1000 and max(replaced) > size * 0.999
