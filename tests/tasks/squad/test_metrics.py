"""SQuAD's metrics: small literals, and the official definitions."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert.tasks.squad import metrics
from bert.tasks.squad.answers import Answers, Entry
from bert.tasks.squad.examples import Answer, SquadExample
from bert.tasks.squad.settings import Settings
from bert.tasks.squad.task import QuestionAnswering
from tests.helpers import run_folders


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


def test_scores_of_version_1():
    examples = [example("a", "red cat", "cat"), example("b", "dog")]
    examples.append(example("e", "1895", "the year 1895"))
    examples.append(example("t", "the"))
    predictions = {"a": "The Cat", "b": "big dog", "t": "an"}  # without "e"
    assert metrics.scores_1(examples, predictions) == {
        "exact_match": pytest.approx(100 * 2 / 4),
        "f1": pytest.approx(100 * (1 + 2 / 3) / 4),  # 0 without words
    }


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


def raw_scores(gold, text):
    """Exact match and F1 of a question; "" is right without a label."""
    gold = [x for x in gold if metrics.normalize_answer(x)] or [""]
    return (
        max(float(metrics.exact_score(x, text)) for x in gold),
        max(metrics.f1_score(x, text) for x in gold),
    )


def best_of(scores, rows, odds):
    """The best sum and its odds, answering one question after the other."""
    best, at = sum(not gold for gold, *_ in rows), 0.0
    order = sorted(range(len(rows)), key=lambda i: odds[i])
    for count, last in enumerate(order, 1):
        total = 0.0
        for place, i in enumerate(order):
            gold, text, _ = rows[i]
            answered = place < count
            total += scores[i] if gold and answered else 0.0
            total += not gold and not (answered and text)
        if total > best + 1e-9:
            best, at = total, odds[last]
    return best, at


def area(scores, rows, odds):
    """Precision at each threshold, times the recall that it gains."""
    known, found, before = sum(bool(x[0]) for x in rows), 0.0, 0.0
    for threshold in sorted({*odds}):
        answered = [i for i, x in enumerate(odds) if x <= threshold]
        hits = sum(scores[i] for i in answered if rows[i][0])
        found += hits / len(answered) * (hits / known - before)
        before = hits / known
    return found


@given(ROWS, st.sampled_from([-2.0, 0.25, 1.0]))
def test_scores_of_version_2_are_those_of_the_definition(rows, threshold):
    examples, predictions, odds = unpack(rows)
    found = metrics.scores_2(examples, predictions, odds, threshold)
    raw = [raw_scores(gold, text) for gold, text, _ in rows]
    odds, expected = [x[2] for x in rows], {}
    for name, scores in zip(("exact", "f1"), zip(*raw)):
        applied = [
            float(not gold) if x > threshold else score
            for (gold, _, x), score in zip(rows, scores)
        ]
        for prefix, kinds in (
            ("", (0, 1)),
            ("HasAns_", (1,)),
            ("NoAns_", (0,)),
        ):
            some = [y for x, y in zip(rows, applied) if bool(x[0]) in kinds]
            if some:
                expected[f"{prefix}{name}"] = 100 * sum(some) / len(some)
                expected[f"{prefix}total"] = len(some)
        best, at = best_of(scores, rows, odds)
        expected[f"best_{name}"] = 100 * best / len(rows)
        expected[f"best_{name}_thresh"] = at
        if any(gold for gold, *_ in rows):
            expected[f"pr_{name}_ap"] = 100 * area(scores, rows, odds)
            oracle = 100 * area([bool(x[0]) for x in rows], rows, odds)
            expected["pr_oracle_ap"] = oracle
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(("odds", "answer"), [(1.5, "cat"), (1.75, "")])
def test_odds_above_the_threshold_are_no_answer(odds, answer):
    settings = dataclasses.replace(
        Settings(),
        version_2_with_negative=True,
        null_score_diff_threshold=1.5,
    )
    task = QuestionAnswering(run_folders.MODEL.tokenizer, settings)
    cat, null = Entry("cat", 4, 7, 0.5, 0.5, 0.75), Entry("", 0, 0, 1, 1, 0.25)
    results = [Answers([cat, null], cat, odds)]
    (found,) = task.decode([], results)
    assert found["answer"] == answer
    assert found["probability"] == (0.75 if answer else 0.25)
    scored = task.score([example("a", "dog")], [], results)
    errors = [x["predicted"] for x in scored.report["worst_errors"]]
    assert errors == ["cat"] * bool(answer)
