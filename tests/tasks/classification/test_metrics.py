import math

import numpy as np
import pytest

from bert.data import postprocessing
from bert.data.labels import CLASSES, MULTI_LABEL, REGRESSION, Labels
from bert.reports import quantities
from bert.tasks.classification import scores
from bert.tasks.classification.glue import TextExample
from bert.tasks.classification.settings import Scoring
from bert.tasks.classification.task import TextClassification
from bert.tasks.metrics import METRICS, Metric

LOGITS = np.array([[0.0, 2.0, 1.0], [3.0, 0.0, -1.0]], np.float32)


def test_probabilities_of_each_kind():
    found = postprocessing.probabilities(LOGITS, CLASSES)
    e = math.e
    total = 1 + e**2 + e
    np.testing.assert_allclose(
        found[0], [1 / total, e**2 / total, e / total], rtol=1e-6
    )
    assert found.dtype == np.float32
    found = postprocessing.probabilities(LOGITS, MULTI_LABEL)
    np.testing.assert_allclose(found[0, :2], [0.5, 1 / (1 + e**-2)], rtol=1e-6)
    found = postprocessing.probabilities(LOGITS[:, :1], REGRESSION)
    assert found.tolist() == [[0.0], [3.0]]


def test_large_logits_overflow_nowhere():
    logits = np.array([[1000.0, -1000.0]], np.float32)
    for kind in (CLASSES, MULTI_LABEL):
        assert postprocessing.probabilities(logits, kind).tolist() == [
            [1.0, 0.0]
        ]
    assert scores.losses(logits, np.array([1]), CLASSES).tolist() == [2000.0]


def test_answers_of_each_kind():
    assert postprocessing.predictions(LOGITS, CLASSES).tolist() == [1, 0]
    assert postprocessing.predictions(LOGITS, MULTI_LABEL).tolist() == [
        [1, 1, 1],
        [1, 1, 0],
    ]
    assert postprocessing.predictions(LOGITS[:, :1], REGRESSION).tolist() == [
        0.0,
        3.0,
    ]


def test_losses_of_each_kind():
    found = scores.losses(LOGITS, np.array([1, 2]), CLASSES)
    e = math.e
    expected = [
        -math.log(e**2 / (1 + e**2 + e)),
        -math.log(e**-1 / (e**3 + 1 + e**-1)),
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    found = scores.losses(LOGITS[:1], np.array([[1, 1, 0]]), MULTI_LABEL)
    by_hand = (
        math.log(2) - math.log(1 / (1 + e**-2)) - math.log(1 - 1 / (1 + e**-1))
    ) / 3
    np.testing.assert_allclose(found, [by_hand], rtol=1e-12)
    found = scores.losses(LOGITS[:, :1], np.array([0.5, 1.0]), REGRESSION)
    assert found.tolist() == [0.25, 4.0]


def test_scores_by_hand():
    labels = np.array([1, 1, 1, 0, 0, 1, 0])
    found = np.array([1, 1, 0, 1, 0, 1, 0])  # 3 hits of 1, 2 of 0
    names = ("accuracy", "f1", "macro_f1", "matthews")
    values = scores.compute(names, labels, found)
    assert values["accuracy"] == pytest.approx(5 / 7)
    of_one, of_zero = 2 * 3 / (2 * 3 + 1 + 1), 2 * 2 / (2 * 2 + 1 + 1)
    assert values["f1"] == pytest.approx(of_one)
    assert values["macro_f1"] == pytest.approx((of_one + of_zero) / 2)
    assert values["matthews"] == pytest.approx(
        (3 * 2 - 1 * 1) / math.sqrt(4 * 4 * 3 * 3)
    )


def test_correlations_by_hand():
    labels = np.array([0.0, 1.0, 2.0, 5.0])
    found = np.array([1.0, 0.0, 2.0, 3.0])
    values = scores.compute(("pearson", "spearman", "mae"), labels, found)
    assert values["mae"] == (1 + 1 + 0 + 2) / 4
    a, b = labels - 2.0, found - 1.5
    assert values["pearson"] == pytest.approx(
        (a * b).sum() / math.sqrt((a * a).sum() * (b * b).sum())
    )
    # Ranks 1 2 3 4 and 2 1 3 4: 1 - 6 * 2 / (4 * 15).
    assert values["spearman"] == pytest.approx(0.8)


def test_several_labels_are_counted_together():
    labels = np.array([[1, 0, 1], [0, 1, 0]])
    found = np.array([[1, 1, 1], [0, 1, 0]])
    values = scores.compute(("micro_f1", "accuracy"), labels, found)
    assert values["micro_f1"] == pytest.approx(2 * 3 / (2 * 3 + 1))
    assert values["accuracy"] == 0.5  # examples with every label right


def test_constant_predictions_score_zero_without_warnings(recwarn):
    labels = np.array([0, 1, 1])
    zeros = np.zeros(3, np.int64)
    assert scores.compute(("f1", "matthews"), labels, zeros) == {
        "f1": 0.0,
        "matthews": 0.0,
    }
    assert scores.compute(("pearson", "spearman"), labels, zeros) == {
        "pearson": 0.0,
        "spearman": 0.0,
    }
    assert not recwarn.list


def test_second_texts_are_ranked_for_each_first_text():
    """The query c has no wrong text, so nothing is said of it."""
    queries = [*"abababaac", *["d"] * 12]
    relevant = np.array([0, 1, 1, 0, 0, 0, 1, 0, 1] + [0] * 11 + [1.0])
    ranks = np.array([7, 2, 5, 3, 1, 1, 3, 2, 1.0, *range(12, 0, -1)])
    found = scores.ranking(queries, relevant, ranks)
    log = math.log2
    a = (1 / log(3) + 1 / log(4)) / (1 + 1 / log(3))
    assert found == {
        "mrr@10": pytest.approx((1 / 2 + 1 / 2 + 0) / 3),
        "ndcg@10": pytest.approx((a + 1 / log(3) + 0) / 3),
    }
    assert scores.ranking(["a"], relevant[:1], ranks[:1]) == {}


TWO = [[0, 1], [-1, 1], [-3, 0]]


@pytest.mark.parametrize(
    ("labels", "gold", "logits", "has_pairs", "expected"),
    [
        (Labels(CLASSES, ("0", "1")), [0, 1, 0], TWO, True, 0.5),
        (Labels(CLASSES, ("1", "0")), [0, 1, 0], TWO, True, 1.0),
        (Labels(REGRESSION), [0.0, 1.0], [[3], [2]], True, 0.5),
        (Labels(REGRESSION), [0.0, 1.0], [[3], [2]], False, None),
        (Labels(REGRESSION), [0.0, 0.5], [[3], [2]], True, None),
        (Labels(CLASSES, ("a", "b")), [0, 1], [[0, 1], [0, 2]], True, None),
    ],
)
def test_labels_of_a_ranking(labels, gold, logits, has_pairs, expected):
    text_b = "cat" * has_pairs
    rows = [TextExample("", "the", text_b, label, 1) for label in gold]
    task = TextClassification(None, labels, 7, has_pairs=has_pairs)
    found = task.score(rows, [], [*np.array(logits, "f4")]).metrics
    assert found.get("mrr@10") == expected


def test_a_metric_is_one_entry(monkeypatch):
    """It is reported and explained, and may select, but not by default."""
    entry = Metric(
        "Mean recall of the classes.",
        "sklearn.metrics:balanced_accuracy_score",
        (CLASSES,),
    )
    monkeypatch.setitem(METRICS, "balanced_accuracy", entry)
    task = TextClassification(None, Labels(CLASSES, ("a", "b", "c")), 8)
    rows = [TextExample(label=x) for x in (1, 0, 1)]
    found = task.score(rows, [], [*LOGITS, LOGITS[1]]).metrics
    assert found["balanced_accuracy"] == pytest.approx(3 / 4)
    assert task.metric == "accuracy"
    assert quantities.meaning("eval_balanced_accuracy") == entry.meaning
    chosen = Scoring(metric_for_best_model="balanced_accuracy")
    chosen.check_labels(task.labels)
