"""Instances have the distributions of the original algorithm.

Each token has an id of its own, which tells where it comes from. A statistic is
a histogram over the instances of a pass. Its means over many passes, ours and
the original's, may differ by five standard errors; passes are independent,
instances are not: those of a document share its target length.
"""

import dataclasses
import random

import numpy as np
import pytest

from bert.data import feature_names
from bert.data.pretraining.settings import InstanceSettings
from tests.helpers import original_instances
from tests.helpers.pretraining_rows import (
    FIRST,
    MASK,
    make_rows,
    numbered,
    of_instances,
    vocabulary,
)

FEW, MANY = 20_000, 200_000  # instances a side
RARE = 100  # smaller totals are added up
HIGHEST = 41  # larger distances count as this one


def usual(rng):
    return [
        [rng.randint(1, 29) for _ in range(rng.randint(1, 31))]
        for _ in range(31)
    ]


def one_sentence(rng):
    return [[rng.randint(1, 70)] for _ in range(293)] + [[7, 11]] * 3


def giant_lines(rng):
    return [
        [
            rng.choice([1, 5, 9, 13, 307, 1009])
            for _ in range(rng.randint(1, 13))
        ]
        for _ in range(13)
    ]


def two_documents(rng):
    return [[rng.randint(1, 13) for _ in range(401)] for _ in range(2)]


# Of 57 tokens, a and b cannot have the same number.
S60 = InstanceSettings(max_seq_length=60, max_predictions_per_seq=11)


def changed(**options):
    return dataclasses.replace(S60, **options)


CASES = {
    "usual": (usual, S60),
    "128": (usual, InstanceSettings()),
    "one sentence": (one_sentence, S60),
    "giant lines": (giant_lines, S60),
    "two documents": (two_documents, S60),
    "short": (usual, changed(short_seq_prob=1.0)),
    "few masks": (usual, changed(max_predictions_per_seq=3)),
    "words": (usual, changed(do_whole_word_mask=True)),
    "marked words": (
        usual,
        changed(do_whole_word_mask=True, word_boundaries=True),
    ),
    "spans": (usual, changed(max_ngram=3)),
    "spans of words": (usual, changed(max_ngram=4, do_whole_word_mask=True)),
    "many masks": (
        usual,
        changed(
            do_whole_word_mask=True,
            masked_lm_prob=0.5,
            max_predictions_per_seq=61,
        ),
    ),
}


class Corpus:
    """Documents, and where each of their tokens is."""

    def __init__(self, make, marked):
        lengths = make(random.Random(7))
        documents = numbered(lengths)
        tokens = sum(map(sum, lengths))
        self.size = FIRST + tokens
        self.count = len(documents)
        # Of each id: its document, the number of its sentence, and the number
        # of tokens before it and after it in its sentence.
        self.document, self.sentence, self.before, self.after = np.zeros(
            (4, self.size), int
        )
        for i, document in enumerate(documents):
            for j, sentence in enumerate(document):
                offsets = np.arange(len(sentence))
                self.document[sentence], self.sentence[sentence] = i, j
                self.before[sentence] = offsets
                self.after[sentence] = offsets[::-1]
        rng = np.random.default_rng(3)
        self.continues = rng.random(self.size) < 0.4
        self.known = vocabulary(
            self.size, () if marked else np.flatnonzero(self.continues).tolist()
        )
        if marked:
            documents = [
                [
                    (np.array(s) + self.size * self.continues[s]).tolist()
                    for s in document
                ]
                for document in documents
            ]
        self.documents = documents

    def statistics(self, rows):
        """Histograms of one pass: name -> counts."""
        ids, text = (
            rows[feature_names.INPUT_IDS],
            rows[feature_names.INPUT_IDS].copy(),
        )
        row, slot = rows[feature_names.MASKED_LM_WEIGHTS].nonzero()
        position = rows[feature_names.MASKED_LM_POSITIONS][row, slot]
        label = rows[feature_names.MASKED_LM_IDS][row, slot]
        text[row, position] = label
        length = rows[feature_names.INPUT_MASK].sum(axis=1)
        b = rows[feature_names.SEGMENT_IDS].sum(axis=1) - 1
        a = length - b - 3
        each = np.arange(len(ids))
        a_first, a_last = text[:, 1], text[each, a]
        b_first, b_last = text[each, a + 2], text[each, length - 2]
        is_random = rows[feature_names.NEXT_SENTENCE_LABELS][:, 0] > 0
        found = ids[row, position]
        masked, kept = found == MASK, found == label
        other = found[~masked & ~kept]
        chosen = np.zeros(ids.shape, bool)
        chosen[row, position] = True
        first = chosen.copy()
        first[:, 1:] &= ~chosen[:, :-1]
        runs = np.bincount(np.cumsum(first.ravel())[chosen.ravel()] - 1)
        longest = ids.shape[1]
        apart = (self.document[b_first] - self.document[a_first]) % self.count
        continues = self.continues[text] & (text >= FIRST)
        split = continues[:, 1:] & (chosen[:, 1:] != chosen[:, :-1])

        def longer(first, last):
            """Which end lost more tokens of its sentence."""
            return np.bincount(
                np.sign(self.before[first] - self.after[last]) + 1, minlength=3
            )

        def near(values):
            return np.bincount(np.minimum(values, HIGHEST), minlength=HIGHEST)

        def within(values):
            return np.bincount(values, minlength=longest)

        return {
            "instances": np.array([len(ids)]),
            "length": within(length),
            "length of a": within(a),
            "length of b": within(b),
            "random next": np.bincount(is_random, minlength=2),
            "length of a before random": within(a[is_random]),
            "length of random b": within(b[is_random]),
            "dropped before a": near(self.before[a_first]),
            "dropped after a": near(self.after[a_last]),
            "dropped before b": near(self.before[b_first]),
            "dropped after b": near(self.after[b_last]),
            "longer end of a": longer(a_first, a_last),
            "longer end of b": longer(b_first, b_last),
            "gap": near((b_first - a_last)[~is_random]),
            "sentence of a": near(self.sentence[a_first]),
            "sentence of b": near(self.sentence[b_first]),
            "sentence of random b": near(self.sentence[b_first[is_random]]),
            "document of a": near(self.document[a_first]),
            "document of random b": near(apart[is_random]),
            "masks": within(np.bincount(row, minlength=len(ids))),
            "position": within(position),
            "position from the end": within(length[row] - position),
            "position after the cut": near(np.abs(position - a[row] - 1)),
            "masked": within(position[masked]),
            "kept": within(position[kept]),
            "replaced": np.bincount(other * 13 // self.size, minlength=13),
            "runs": near(runs),
            "continuations": np.bincount(continues[chosen], minlength=2),
            "split words": np.array([split.sum()]),
        }


def passes_of(make, settings, count):
    """Statistics of passes with at least `count` instances a side."""
    corpus = Corpus(make, settings.word_boundaries)
    sides = [], []
    made = 0
    while made < count or len(sides[0]) < 60:
        number = len(sides[0])
        theirs = original_instances.partition_instances(
            corpus.documents, number, 1, settings, corpus.known
        )
        ours = make_rows(
            corpus.documents, settings, corpus.known, number, partition=1
        )
        for side, rows in zip(sides, (ours, of_instances(theirs, settings))):
            side.append(corpus.statistics(rows))
        made += min(len(theirs), len(ours[feature_names.INPUT_IDS]))
    return sides


def check(name, count):
    """Compares all statistics of a case."""
    ours, theirs = passes_of(*CASES[name], count)
    compared = 0
    for statistic in ours[0]:
        width = max(len(x[statistic]) for x in ours + theirs)
        a, b = (
            np.array(
                [
                    np.pad(x[statistic], (0, width - len(x[statistic])))
                    for x in side
                ],
                float,
            )
            for side in (ours, theirs)
        )
        rare = (a + b).sum(axis=0) < RARE
        a, b = (
            np.column_stack([x[:, ~rare], x[:, rare].sum(axis=1)])
            for x in (a, b)
        )
        error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / (len(ours) - 1))
        difference = np.abs(a.mean(axis=0) - b.mean(axis=0))
        worst = np.argmax(difference - 5 * error)
        assert (difference <= 5 * error).all(), (
            f"{statistic}: {np.flatnonzero(~rare)[worst : worst + 1]}: "
            f"{a.mean(axis=0)[worst]} instead of {b.mean(axis=0)[worst]} "
            f"+- {error[worst]}"
        )
        compared += len(error)
    assert compared > 100


@pytest.mark.parametrize("name", ["usual", "giant lines", "spans of words"])
def test_distributions_are_those_of_the_original(name):
    check(name, FEW)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_distributions_of_many_instances(name):
    check(name, MANY)
