"""From logits to answers: n-best, texts, odds of no answer."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.data.text.tokenization import BasicTokenizer
from bert.tasks.squad import answers
from bert.tasks.squad.answers import Candidate, OriginalText, WindowLogits

#           0   3  6      13  17    23
CONTEXT = "It is Steve Smith's (b. 1895)"


def window(start, end, offsets, best=None, ids=None):
    """`offsets` are (first, after the last) characters, None outside."""
    offsets = [x or (0, 0) for x in offsets]
    return WindowLogits(
        np.array(start, np.float32),
        np.array(end, np.float32),
        np.array([x[0] for x in offsets], np.int32),
        np.array([x[1] for x in offsets], np.int32),
        np.array(best or [x[1] > 0 for x in offsets], np.int32),
        ids,
    )


# [CLS] who [SEP] steve smith ' s [SEP]
OFFSETS = [None, None, None, (6, 11), (12, 17), (17, 18), (18, 19), None]


def one(**changed):
    """Best is `Steve Smith` with 7; `Smith` 6, `Steve` 4, `Smith's` 3."""
    values = {
        "start": [1.0, 9, 9, 4, 3, 0, -1, 9],
        "end": [0.5, 9, 9, 0, 3, -2, 0, 9],
        "offsets": OFFSETS,
        **changed,
    }
    return window(**values)


def extract(windows, n_best_size=8, longest=3, with_null=False):
    return answers.extract(
        windows,
        answers.offsets_text(CONTEXT, windows),
        n_best_size,
        longest,
        with_null,
    )


def test_nbest_as_drawn():
    found = extract([one()], n_best_size=6)
    assert [x[:5] for x in found.nbest] == [
        ("Steve Smith", 6, 17, 4, 3),
        ("Smith", 12, 17, 3, 3),
        ("Steve", 6, 11, 4, 0),
    ]
    # Of six starts and ends, four were outside of the context.
    found = extract([one()])
    assert [x.text for x in found.nbest][2:5] == [
        "Steve",
        "Smith's",
        "Steve Smith'",
    ]
    shares = np.exp([7.0, 6, 4, 3, 2])
    total = sum(math.exp(x.start_logit + x.end_logit) for x in found.nbest)
    assert [x.probability for x in found.nbest[:5]] == pytest.approx(
        list(shares / total)
    )
    assert sum(x.probability for x in found.nbest) == pytest.approx(1)
    assert found.best == found.nbest[0]
    assert found.null_odds == 1.5 - 7


def test_no_answer_is_one_of_the_nbest():
    cls = one(
        start=[3.0, 0, 0, 4, 3, 0, -1, 0], end=[2.5, 0, 0, 0, 3, -2, 0, 0]
    )
    found = extract([cls], with_null=True)
    assert [x.text for x in found.nbest[:4]] == [
        "Steve Smith",
        "Smith",
        "",
        "Steve",
    ]
    assert found.nbest[2][:5] == ("", 0, 0, 3.0, 2.5)
    assert found.null_odds == -1.5


def test_no_answer_is_added_to_a_full_list():
    low = one(
        start=[-5.0, -9, -9, 4, 3, 0, -1, -9], end=[0.0] * 4 + [3.0] + [0.0] * 3
    )
    found = extract([low], n_best_size=2, with_null=True)
    assert [x.text for x in found.nbest] == ["Steve Smith", "Smith", ""]
    scored = one(start=[9.0, 0, 0, 4, 3, 0, -1, 0], end=[9.0] + [0.0] * 7)
    # The original fails here: its one best is no answer.
    found = extract([scored], n_best_size=1, with_null=True)
    assert [x.text for x in found.nbest] == [""]
    assert found.best is None
    assert found.null_odds == answers.NO_SPAN


def test_windows_share_an_nbest_without_repeating_texts():
    first = one(best=[0, 0, 0, 1, 0, 0, 0, 0])
    second = one(
        start=[0.0, 9, 9, 2, 5, 0, -1, 9], best=[0, 0, 0, 0, 1, 1, 1, 0]
    )
    found = extract([first, second], with_null=True)
    texts = [x.text for x in found.nbest]
    # `Smith` may not start in the first window, which has less context for it.
    assert texts[:3] == ["Smith", "Steve Smith", "Smith's"]
    assert found.nbest[0].start_logit == 5
    assert len(set(texts)) == len(texts)
    # The odds come from the window with the lowest score of no answer.
    assert found.null_odds == 0.5 - 8


def test_equal_scores_come_in_the_order_of_the_windows():
    flat = one(start=[0.0] * 8, end=[0.0] * 8)
    found = answers.candidates([flat, flat], 8, 2)
    assert [x[:3] for x in found[:4]] == [
        (0, 3, 3),
        (0, 3, 4),
        (0, 4, 4),
        (0, 4, 5),
    ]
    assert found[7].window == 1 and len(found) == 14


@pytest.mark.parametrize("with_null", [False, True])
def test_a_question_without_spans_has_no_answer(with_null):
    outside = one(offsets=[None] * 8)
    for windows in ([], [outside]):
        found = extract(windows, with_null=with_null)
        assert [x.text for x in found.nbest] == [""]
        assert found.nbest[0].probability == 1.0
        assert found.best is None
        assert found.null_odds == answers.NO_SPAN


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


LOGITS = st.lists(
    st.sampled_from([-3.0, -1.5, 0.0, 0.25, 2.0]), min_size=8, max_size=8
)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            LOGITS, LOGITS, st.lists(st.booleans(), min_size=8, max_size=8)
        ),
        max_size=3,
    ),
    st.integers(1, 9),
    st.integers(1, 5),
)
def test_candidates_equal_loops(parts, n_best_size, longest):
    windows = [
        one(start=a, end=b, best=[int(x) for x in c]) for a, b, c in parts
    ]
    found = answers.candidates(windows, n_best_size, longest)
    assert found == simple(windows, n_best_size, longest)


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
