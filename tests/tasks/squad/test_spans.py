"""From logits to answers: n-best, texts, odds of no answer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from bert.data.text.tokenization import BasicTokenizer
from bert.tasks.squad import answers
from bert.tasks.squad.answers import Candidate, OriginalText, WindowLogits

#           0   3  6      13  17    23
CONTEXT = "It is Steve Smith's (b. 1895)"


def window(start, end, offsets, best=None, ids=()):
    """`offsets` are (first, after the last) characters, None outside."""
    offsets = [x or (0, 0) for x in offsets]
    return WindowLogits(
        np.array(start, np.float32),
        np.array(end, np.float32),
        np.array([x[0] for x in offsets], np.int32),
        np.array([x[1] for x in offsets], np.int32),
        np.array(best or [x[1] > 0 for x in offsets], np.int32),
        np.array(ids, np.int32),
    )


# [CLS] who [SEP] steve smith ' s [SEP]
OFFSETS = [None, None, None, (6, 11), (12, 17), (17, 18), (18, 19), None]


def order(logits, count):
    positions = range(len(logits))
    return sorted(positions, key=lambda i: logits[i], reverse=True)[:count]


def simple(windows, n_best_size, longest):
    """The candidates, in loops."""
    found = []
    for number, x in enumerate(windows):
        for a in order(x.start_logits, n_best_size):
            for b in order(x.end_logits, n_best_size):
                inside = x.limits[a] and x.limits[b] and x.is_max_context[a]
                if inside and a <= b < a + longest:
                    pair = float(x.start_logits[a]), float(x.end_logits[b])
                    found.append(Candidate(number, a, b, *pair))
    return sorted(found, key=lambda x: x[3] + x[4], reverse=True)


def answers_of(windows, n_best_size, longest, with_null):
    """Texts and scores of the n-best list, the best text and its odds."""
    spans = simple(windows, n_best_size, longest)
    scored = [
        (x[3] + x[4], answers.offsets_text(CONTEXT, windows)(x)) for x in spans
    ]
    null = min(
        (float(x.start_logits[0]) + float(x.end_logits[0]) for x in windows),
        default=0.0,
    )
    ranked = scored + [(null, "")] * with_null
    ranked = sorted(ranked, key=lambda x: -x[0])  # no answer after its equals
    of_texts = {}
    for score, text in ranked:
        of_texts.setdefault(text, score)
    nbest = [*of_texts.items()][:n_best_size]
    if "" not in dict(nbest) and (with_null or not nbest):
        nbest.append(("", null))
    score, best = scored[0] if scored else (None, None)
    odds = answers.NO_SPAN if best is None else null - score
    return nbest, best, odds


LOGITS = st.lists(
    st.sampled_from([-3.0, -1.5, 0.0, 0.25, 2.0]), min_size=8, max_size=8
)
FLAGS = st.lists(st.booleans(), min_size=8, max_size=8)
NOWHERE = [None] * 8


@given(
    st.lists(
        st.tuples(
            LOGITS, LOGITS, FLAGS, st.sampled_from([OFFSETS] * 5 + [NOWHERE])
        ),
        max_size=3,
    ),
    st.integers(1, 9),
    st.integers(1, 5),
    st.booleans(),
)
def test_answers_equal_loops(parts, n_best_size, longest, with_null):
    """The original's n-best list; padding and the question are outside."""
    windows = [
        window(start, end, offsets, [int(x) for x in flags])
        for start, end, flags, offsets in parts
    ]
    found = answers.candidates(windows, n_best_size, longest)
    assert found == simple(windows, n_best_size, longest)
    nbest, best, odds = answers_of(windows, n_best_size, longest, with_null)
    text_of = answers.offsets_text(CONTEXT, windows)
    found = answers.extract(windows, text_of, n_best_size, longest, with_null)
    assert [(x.text, x[3] + x[4]) for x in found.nbest] == nbest
    assert (found.best and found.best.text, found.null_odds) == (best, odds)
    chances = special.softmax([score for _, score in nbest])
    np.testing.assert_allclose([x.probability for x in found.nbest], chances)
    for entry in found.nbest:
        assert CONTEXT[entry.start : entry.limit] == entry.text
    if best is not None:
        chance = found.best.probability
        expected = np.exp(found.best[3] + found.best[4] - nbest[0][1])
        assert chance == pytest.approx(expected * chances[0])


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("steve smith", "Steve Smith's", "Steve Smith"),
        ("1895", "(1895-1943).", "1895"),
        ("cafe", "caf\u00e9s", "caf\u00e9"),
        # A combining accent is counted: all words.
        ("cafe", "cafe\u0301s bar", "cafe\u0301s bar"),
        ("[UNK]", "\u2603 (x)", "\u2603 (x)"),
        ("b c", "a b  c d", "b  c"),
        # Of white space, only spaces are not counted.
        ("steve smith", "Steve\u00a0Smith's", "Steve\u00a0Smith's"),
    ],
)
def test_get_final_text_as_in_the_original(text, words, expected):
    logged = []
    original = OriginalText([], BasicTokenizer(), logged.append)
    assert original.get_final_text(text, words) == expected
    assert bool(logged) == (expected == words)


def test_both_kinds_of_texts():
    context = "\u2603 Steve Smith's\n(b. 1895)"
    tokens = ["[UNK]", "steve", "smith", "'", "s", "(", "b", ".", "18", "##95"]
    offsets = [(0, 1), (2, 7), (8, 13), (13, 14), (14, 15), (16, 17), (17, 18)]
    offsets += [(18, 19), (20, 22), (22, 24), (24, 25)]
    ids = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 5])
    x = window([0.0] * 11, [0.0] * 11, offsets, ids=ids)
    exact = answers.offsets_text(context, [x])
    original = OriginalText(tokens, BasicTokenizer()).text_of(context, [x])

    def both(start, end):
        span = Candidate(0, start, end, 0.0, 0.0)
        return exact(span), original(span)

    assert both(1, 2) == ("Steve Smith", "Steve Smith")
    assert both(8, 9) == ("1895", "1895")
    # White space stays, or becomes a space.
    assert both(3, 6) == ("'s\n(b", "'s (b")
    # An unknown token is found by its offsets.
    assert both(0, 0) == ("\u2603", "\u2603")
    assert both(0, 1) == ("\u2603 Steve", "\u2603 Steve")
