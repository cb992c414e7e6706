"""Post-processing, losses and metrics, beside SciPy and their definitions."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats

from bert.data import postprocessing
from bert.data.labels import (
    CLASSES,
    MULTI_LABEL,
    REGRESSION,
    Labels,
    PostProcessing,
)
from bert.reports import quantities
from bert.tasks.classification import scores
from bert.tasks.classification.files import TextExample
from bert.tasks.classification.scoring_settings import Scoring
from bert.tasks.classification.task import TextClassification
from bert.tasks.metrics import METRICS, Metric

C = 3
EIGHTHS = st.integers(-40, 40).map(lambda x: x / 8)  # exact in float32
SHIFTS = st.one_of(st.just(()), st.tuples(*[EIGHTHS] * C))
LOGITS = arrays(
    np.float32,
    st.tuples(st.integers(1, 6), st.just(C)),
    elements=st.one_of(EIGHTHS, st.sampled_from([-1000.0, 1000.0])),
)
NAMES = ("a", "b", "c")


@given(
    LOGITS,
    SHIFTS,
    SHIFTS,
    st.sampled_from([0.25, 1.0, 3.0]),
    st.sampled_from([CLASSES, MULTI_LABEL]),
)
def test_predictions_are_those_of_the_definition(
    logits, thresholds, log_weights, temperature, kind
):
    decision = PostProcessing(thresholds, log_weights, temperature)
    task = TextClassification(None, Labels(kind, NAMES, decision=decision), 7)
    exact = logits.astype(np.float64)
    scaled = (exact - np.array(log_weights or 0.0)) / temperature
    margins = exact - np.array(thresholds or log_weights or 0.0)
    if kind == CLASSES:
        chances = special.softmax(scaled, -1)
        labels = [NAMES[i] for i in margins.argmax(-1)]
    else:
        chances = special.expit(scaled)
        labels = [[NAMES[i] for i in range(C) if x[i] >= 0] for x in margins]
    found = task.decode([], [*logits])
    assert [x["label"] for x in found] == labels
    for x, row in zip(found, chances):
        np.testing.assert_allclose(
            [x["probabilities"][name] for name in NAMES], row, atol=1e-6
        )


@given(LOGITS, st.floats(0, 1), st.integers(0, 5), st.booleans())
def test_less_probable_predictions_are_rejected(logits, below, row, is_exact):
    """The minimum itself is not rejected, also if it is a probability."""
    chances = postprocessing.probabilities(logits, CLASSES).max(-1)
    if is_exact:
        below = float(chances[row % len(chances)])
    labels = Labels(names=NAMES, decision=PostProcessing(unknown_below=below))
    found = TextClassification(None, labels, 7).decode([], [*logits])
    for x, chance, best in zip(found, chances, logits.argmax(-1)):
        is_rejected = chance < np.float32(below)
        assert x["label"] == (None if is_rejected else NAMES[best])


@given(LOGITS, st.data())
def test_losses_are_those_of_the_definition(logits, data):
    exact, n = logits.astype(np.float64), len(logits)
    gold = data.draw(arrays(np.int64, n, elements=st.integers(0, C - 1)))
    found = scores.losses(logits, gold, CLASSES)
    expected = -special.log_softmax(exact, -1)[np.arange(n), gold]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    several = data.draw(arrays(np.int64, (n, C), elements=st.integers(0, 1)))
    found = scores.losses(logits, several, MULTI_LABEL)
    signs = np.where(several, 1, -1)
    expected = -special.log_expit(signs * exact).mean(-1)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    numbers = data.draw(arrays(np.float64, n, elements=EIGHTHS))
    found = scores.losses(logits[:, :1], numbers, REGRESSION)
    np.testing.assert_array_equal(found, (exact[:, 0] - numbers) ** 2)


def f1(right, wrong):
    """F1 of hits, and of false positives and false negatives together."""
    return 2 * right / (2 * right + wrong) if right else 0.0


@given(
    st.lists(
        st.tuples(*[st.integers(0, 1)] * 4, st.integers(1, 3)),
        min_size=1,
        max_size=12,
    )
)
def test_metrics_are_those_of_the_definition(drawn):
    """A weight counts as as many equal examples; constants score 0."""
    a, b, x, y, weights = np.array(drawn).T
    many = [np.repeat(z, weights) for z in (a, b, x, y)]
    gold, other, found, also = many
    names = ("accuracy", "f1", "macro_f1", "matthews")
    values = scores.compute(names, a, x, weights)
    ones, zeros = (
        f1((gold == z)[found == z].sum(), (gold != found).sum()) for z in (1, 0)
    )
    assert values["accuracy"] == pytest.approx((gold == found).mean())
    assert values["f1"] == pytest.approx(ones)
    kinds = {*gold, *found}
    both = [z for z, kind in ((ones, 1), (zeros, 0)) if kind in kinds]
    assert values["macro_f1"] == pytest.approx(np.mean(both))
    is_constant = len({*gold}) == 1 or len({*found}) == 1
    linear = 0.0 if is_constant else stats.pearsonr(gold, found).statistic
    assert values["matthews"] == pytest.approx(linear, abs=1e-9)

    several = np.stack([a, b], -1), np.stack([x, y], -1)
    values = scores.compute(("micro_f1", "accuracy"), *several, weights)
    right = (gold & found).sum() + (other & also).sum()
    wrong = (gold != found).sum() + (other != also).sum()
    assert values["micro_f1"] == pytest.approx(f1(right, wrong))
    equal = (gold == found) & (other == also)
    assert values["accuracy"] == pytest.approx(equal.mean())


@given(st.lists(st.tuples(EIGHTHS, EIGHTHS, st.integers(1, 3)), min_size=2))
def test_correlations_are_those_of_scipy(drawn):
    """The ranks are those of the examples, without weights."""
    gold, found, weights = (np.array(x) for x in zip(*drawn))
    names = ("pearson", "spearman", "mae")
    ranks = stats.rankdata(gold), stats.rankdata(found)
    for given_weights in (None, weights):
        values = scores.compute(names, gold, found, given_weights)
        times = weights if given_weights is not None else 1
        expected = [0.0, 0.0]
        if np.ptp(gold) and np.ptp(found):
            expected = [
                stats.pearsonr(np.repeat(a, times), np.repeat(b, times))[0]
                for a, b in ((gold, found), ranks)
            ]
        assert values["pearson"] == pytest.approx(expected[0], abs=1e-9)
        assert values["spearman"] == pytest.approx(expected[1], abs=1e-9)
        errors = np.repeat(np.abs(gold - found), times)
        assert values["mae"] == pytest.approx(errors.mean())


def test_the_loss_counts_the_weights_of_examples():
    rows = [TextExample(label=x, weight=y) for x, y in ((0, 3.0), (1, 1.0))]
    task = TextClassification(None, Labels(names=NAMES), 7)
    logits = np.log(np.array([[1, 2, 1], [1, 2, 1]], np.float32))
    found = task.score(rows, [], [*logits]).metrics
    expected = (3 * math.log(4) + math.log(2)) / 4
    assert found["loss"] == pytest.approx(expected)
    assert found["accuracy"] == 0.25


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.sampled_from([0, 0, 0, 1]),
            st.integers(0, 20),
        ),
        min_size=1,
        max_size=40,
    )
)
@example([("a", 1, 9)] * 12 + [("a", 0, 20)])
def test_ranking_metrics_are_those_of_the_definition(drawn):
    """Queries without both kinds of texts do not count."""
    gains, reciprocals = [], []
    for query in "ab":
        some = [(x, rank) for q, x, rank in drawn if q == query]
        hits = [x for x, _ in sorted(some, key=lambda x: -x[1])]
        if len({*hits}) == 2:
            best = sorted(hits, reverse=True)
            gain, ideal = (
                sum(x / math.log2(i + 2) for i, x in enumerate(y[:10]))
                for y in (hits, best)
            )
            gains.append(gain / ideal)
            first = hits.index(1) + 1
            reciprocals.append(1 / first if first <= 10 else 0.0)
    queries, relevant, ranks = zip(*drawn)
    found = scores.ranking(
        [*queries], np.array(relevant, float), np.array(ranks, float)
    )
    if gains:
        assert found == {
            "mrr@10": pytest.approx(np.mean(reciprocals)),
            "ndcg@10": pytest.approx(np.mean(gains)),
        }
    else:
        assert found == {}


TWO = [[0, 1], [-3, 0], [-1, 1]]


@pytest.mark.parametrize(
    ("labels", "gold", "logits", "has_pairs", "expected"),
    [
        (Labels(CLASSES, ("0", "1")), [0, 1, 0], TWO, True, 1.0),
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


@pytest.mark.parametrize(
    ("labels", "gold", "train", "expected"),
    [
        (
            Labels(REGRESSION),
            [1.0, 1.0],
            [0.0, 1.0, 8.0],
            {"loss/majority": 4.0, "mae/majority": 0.0},
        ),
        (
            Labels(MULTI_LABEL, NAMES),
            [[1, 0, 0], [1, 1, 0], [0, 0, 0]],
            [[1, 0, 0], [0, 1, 1], [1, 0, 0]],
            {"accuracy/majority": 1 / 3},
        ),
    ],
)
def test_baselines_are_constants_of_the_training(labels, gold, train, expected):
    """The mean for the loss, the median for the distance, a set of labels."""
    found = scores.baselines(labels, np.array(gold), np.array(train))
    assert found == pytest.approx(expected)


def test_a_metric_is_one_entry(monkeypatch):
    """It is reported and explained, and may select, but not by default."""
    entry = Metric(
        "Mean recall of the classes.",
        "sklearn.metrics:balanced_accuracy_score",
        (CLASSES,),
    )
    monkeypatch.setitem(METRICS, "balanced_accuracy", entry)
    task = TextClassification(None, Labels(CLASSES, NAMES), 8)
    logits = np.array([[0, 2, 1], [3, 0, -1], [3, 0, -1]], np.float32)
    rows = [TextExample(label=x) for x in (1, 0, 1)]
    found = task.score(rows, [], [*logits]).metrics
    assert found["balanced_accuracy"] == pytest.approx(3 / 4)
    assert task.metric == "accuracy"
    assert quantities.meaning("eval_balanced_accuracy") == entry.meaning
    chosen = Scoring(metric_for_best_model="balanced_accuracy")
    chosen.check_flags_for(task.labels)
