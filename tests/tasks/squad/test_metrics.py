"""SQuAD's metrics: small literals, and the official definitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert.tasks.squad import metrics
from bert.tasks.squad.examples import Answer, SquadExample


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The Cat, an  a-b!", "cat ab"),
        ("a", ""),
        ("theatre's THE", "theatres"),
        ("«Élan» – the\u00a0end", "«élan» – end"),
        ("an\tA\nthe", ""),
        ("a.an", "aan"),
    ],
)
def test_normalizes(text, normal):
    assert metrics.normalize_answer(text) == normal


def test_counts_words():
    assert metrics.f1_score("red cat sat", "the cat, sat!") == 4 / 5
    assert metrics.f1_score("cat cat", "cat dog") == 1 / 2
    assert metrics.f1_score("cat", "dog") == 0
    assert metrics.f1_score("the", "an") == 1
    assert metrics.f1_score("the", "an", 0.0) == 0
    assert metrics.f1_score("cat", "") == 0
    assert metrics.exact_score("The cat.", "cat") == 1


def example(key, *answers):
    return SquadExample(
        key, "", "", tuple(map(Answer, answers)), impossible=not answers
    )


EXAMPLES = [
    example("a", "red cat", "cat"),
    example("b", "dog"),
    example("c"),
    example("d"),
    example("e", "1895", "the year 1895"),
]
PREDICTIONS = {"a": "The Cat", "b": "big dog", "c": "", "d": "x", "e": "no"}
ODDS = {"a": -2.0, "b": 1.5, "c": 3.0, "d": 0.5, "e": 0.5}


def test_scores_of_version_1():
    answered = [x for x in EXAMPLES if x.answers]
    predictions = {"a": "The Cat", "b": "big dog"}  # the last is missing
    assert metrics.scores_1(answered, predictions) == {
        "exact_match": pytest.approx(100 / 3),
        "f1": pytest.approx(100 * (1 + 2 / 3) / 3),
    }


def test_scores_of_version_2():
    third = pytest.approx(100 / 3)
    # With odds above 1.0 "b" counts as "".
    assert metrics.scores_2(EXAMPLES, PREDICTIONS, ODDS, 1.0) == {
        "exact": 40.0,
        "f1": 40.0,
        "total": 5,
        "HasAns_exact": third,
        "HasAns_f1": third,
        "HasAns_total": 3,
        "NoAns_exact": 50.0,
        "NoAns_f1": 50.0,
        "NoAns_total": 2,
        # Best is to answer "a" alone: 1 + 2 of 5.
        "best_exact": 60.0,
        "best_exact_thresh": -2.0,
        "best_f1": 60.0,
        "best_f1_thresh": -2.0,
        # Precision 1 at recall 1/3; nothing more is exact.
        "pr_exact_ap": pytest.approx(100 / 3),
        # 1 at 1/3, then 5/3 of 4 at 5/9.
        "pr_f1_ap": pytest.approx(100 * (1 / 3 + 5 / 12 * 2 / 9)),
        # 1 at 1/3, then 2 of 3 at 2/3, 3 of 4 at 1.
        "pr_oracle_ap": pytest.approx(100 * (1 / 3 + 2 / 9 + 3 / 12)),
    }


def test_a_file_of_one_kind_has_no_scores_of_the_other():
    some = [x for x in EXAMPLES if not x.answers]
    found = metrics.scores_2(some, PREDICTIONS, {"c": 3.0, "d": 0.5}, 1.0)
    assert not any(name.startswith(("HasAns", "pr_")) for name in found)
    assert found["NoAns_total"] == 2


@pytest.mark.parametrize(
    ("first", "scores", "expected"),
    [
        ("x", {"a": 1.0, "b": 0.0}, (50.0, -2.0)),
        ("x", {"a": 0.0, "b": 0.0}, (0.0, 0.0)),
        ("", {"a": 1.0, "b": 1.0}, (100.0, 1.5)),
    ],
)
def test_the_best_threshold_answers_no_more_than_needed(
    first, scores, expected
):
    """An answer that does not change the score is not given."""
    predictions, odds = {"a": first, "b": "y"}, {"a": -2.0, "b": 1.5}
    has_answer = {"a": bool(first), "b": True}
    found = metrics.best_threshold(predictions, scores, odds, has_answer)
    assert found == expected


SOME = ["", "a", "the cat", "cat", "Cat!", "dog cat", "1895", "é", "(a) b"]
ROWS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(SOME), max_size=3),
        st.sampled_from(SOME),
        st.sampled_from([-2.0, -0.5, 0.0, 1.0, 1.5, 3.0]),
    ),
    min_size=1,
    max_size=12,
)


def unpack(rows):
    examples = [example(str(i), *x[0]) for i, x in enumerate(rows)]
    predictions = {str(i): x[1] for i, x in enumerate(rows)}
    odds = {str(i): x[2] for i, x in enumerate(rows)}
    return examples, predictions, odds


@given(ROWS)
def test_the_tuned_threshold_is_the_best(rows):
    examples, answers, odds = unpack(rows)
    tuned = metrics.tune_threshold(examples, answers, odds)

    def f1(threshold):
        applied = {
            key: "" if odds[key] > threshold else text
            for key, text in answers.items()
        }
        return sum(metrics.raw_scores(examples, applied)[1].values())

    every = [f1(x) for x in (-9.0, -2.0, -0.5, 0.0, 1.0, 1.5, 3.0)]
    assert f1(tuned) == pytest.approx(max(every))
    assert tuned not in {odds[key] for key, text in answers.items() if text}
