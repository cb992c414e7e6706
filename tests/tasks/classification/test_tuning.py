"""Fitted thresholds and temperatures, beside a search in all values."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special
from sklearn.metrics import f1_score, precision_score, recall_score

from bert.data import postprocessing
from bert.data.labels import CLASSES, MULTI_LABEL, Labels, PostProcessing
from bert.tasks.classification import fitting, scores
from bert.tasks.classification.files import TextExample
from bert.tasks.classification.scoring_settings import Scoring
from bert.tasks.classification.task import TextClassification

TWO, THREE = Labels(names=("ham", "spam")), Labels(names=("a", "b", "c"))
SEVERAL = Labels(MULTI_LABEL, ("a", "b", "c"))


def fit(labels, logits, gold, weights=(), **flags):
    """The fitted post-processing, and the cross-fitted scores."""
    task = TextClassification(None, labels, 7, class_weights=weights)
    rows = [TextExample("0", "", "", x, 1) for x in gold.tolist()]
    return fitting.fit(task, rows, logits, Scoring(**flags))


def predicted(labels, evaluation):
    """The predictions of an evaluation, as numbers."""
    if labels.kind == CLASSES:
        return np.array([labels.names.index(x) for x in evaluation.predicted])
    return np.array(
        [[x in some for x in labels.names] for some in evaluation.predicted]
    )


def test_thresholds_replace_a_minimum_probability():
    """It was recorded by an earlier command, and excludes thresholds."""
    rejecting = Labels(
        names=("ham", "spam"), decision=PostProcessing(unknown_below=0.9)
    )
    logits = np.array([[1, 0], [0, 1], [2, 0], [0, 3]], "f4")
    gold = np.array([0, 1, 0, 1])
    decision, _ = fit(rejecting, logits, gold, tune_thresholds=True)
    assert decision.thresholds and decision.unknown_below == 0.0
    decision, _ = fit(rejecting, logits, gold, calibrate=True)
    assert decision.unknown_below == 0.9


HALVES = st.integers(-6, 6).map(lambda x: x / 2)
EXAMPLES = st.lists(st.tuples(HALVES, st.booleans()), min_size=1, max_size=30)


@given(EXAMPLES)
def test_a_threshold_has_the_highest_f1_and_is_far_from_all_logits(examples):
    margins, gold = (np.array(x) for x in zip(*examples))
    found = fitting.cut_of(margins.astype("f4"), gold.astype(int))
    if not gold.any():
        assert found == 0.0
        return
    every = [f1_score(gold, margins >= x) for x in margins]
    assert f1_score(gold, margins >= found) == pytest.approx(max(every))
    assert np.abs(margins - found).min() >= 0.25


def drawn(kind, scale, seed, shift=0.0, count=301):
    """Logits, and labels that are drawn from their probabilities."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (count, 3))
    if kind == MULTI_LABEL:
        gold = (rng.random((count, 3)) < special.expit(logits)).astype(int)
    else:
        chances = special.softmax(logits, -1).cumsum(-1)
        gold = (chances < rng.random((count, 1))).sum(-1).clip(max=2)
    return (logits * scale + shift).astype("f4"), gold


@settings(max_examples=15)
@given(
    st.sampled_from([CLASSES, MULTI_LABEL]),
    st.sampled_from([0.2, 1.0, 4.0]),
    st.integers(0, 99),
)
def test_no_other_temperature_has_a_lower_loss(kind, scale, seed):
    logits, gold = drawn(kind, scale, seed)
    found = fitting.temperature(logits, gold, kind)

    def loss(temperature):
        return scores.losses(logits / temperature, gold, kind).mean()

    others = found * np.exp(np.linspace(-2, 2, 41))
    assert loss(found) <= min(map(loss, others)) + 1e-7
    assert found == pytest.approx(scale, rel=0.5)


@given(
    arrays(np.float64, (9, 3), elements=st.integers(0, 20).map(float)),
    arrays(np.int64, 9, elements=st.integers(0, 2)),
    arrays(np.int64, 9, elements=st.integers(0, 2)),
    st.sampled_from([CLASSES, MULTI_LABEL]),
)
def test_errors_of_calibration_are_those_of_the_definition(
    logits, gold, found, kind
):
    """Fifteen bins of the predictions that are given; 1 is in the last."""
    if kind == CLASSES:
        chances = special.softmax(logits, -1)[np.arange(9), found]
        hits = gold == found
    else:
        gold, found = np.eye(3, dtype=int)[gold], np.eye(3, dtype=int)[found]
        chances, hits = special.expit(logits).ravel(), gold.ravel()
    chances = chances.astype("f4")
    of_bins = {}
    for chance, hit in zip(chances, hits):
        number = min(int(chance * np.float32(15)), 14)
        of_bins.setdefault(number, []).append((chance, hit))
    means = [np.mean(of_bins[x], 0) for x in sorted(of_bins)]
    counts = [len(of_bins[x]) for x in sorted(of_bins)]
    errors = [n * abs(a - b) for n, (a, b) in zip(counts, means)]
    result = fitting.calibration(logits, gold, found, kind)
    assert result["error"] == pytest.approx(sum(errors) / sum(counts), abs=1e-6)
    assert [x[2] for x in result["bins"]] == counts
    np.testing.assert_allclose([x[:2] for x in result["bins"]], means, 1e-5)


WEIGHTS = (0.2, 1.0, 5.0)


@pytest.mark.parametrize(
    ("labels", "weights", "flags"),
    [
        (SEVERAL, (), {"tune_thresholds": True, "calibrate": True}),
        (SEVERAL, WEIGHTS, {"calibrate": True}),
        (THREE, WEIGHTS, {"calibrate": True}),
        (THREE, (), {"calibrate": True}),
    ],
)
def test_each_half_is_predicted_with_the_values_of_the_other(
    labels, weights, flags
):
    """Stratified halves; the values of all examples are kept."""
    logs = np.log(weights or 1.0)
    logits, gold = drawn(labels.kind, 2.0, 5, logs, 97)
    decision, tuned = fit(labels, logits, gold, weights, **flags)
    found = predicted(labels, tuned)
    order = np.lexsort(gold.reshape(97, -1).T)
    calibrated = np.zeros((97, 3))

    def values_of(part):
        shifted = logits[part] - logs
        temperature = fitting.temperature(shifted, gold[part], labels.kind)
        cuts = logs * np.ones(3)
        if "tune_thresholds" in flags:
            pairs = zip(logits[part].T, gold[part].T)
            cuts = np.array([fitting.cut_of(*x) for x in pairs])
        return temperature, cuts

    for half, other in ((order[::2], order[1::2]), (order[1::2], order[::2])):
        temperature, cuts = values_of(other)
        margins = logits[half] - cuts
        expected = margins >= 0
        if labels.kind == CLASSES:
            expected = margins.argmax(-1)
        assert (found[half] == expected).all()
        calibrated[half] = (logits[half] - logs) / temperature
    losses = scores.losses(calibrated, gold, labels.kind)
    assert tuned.metrics["loss"] == pytest.approx(losses.mean())
    before = postprocessing.predictions(logits, labels.kind)
    for key, *values in (
        ("before", logits, gold, before),
        ("after", calibrated, gold, found),
    ):
        expected = fitting.calibration(*values, labels.kind)["error"]
        error = tuned.report["calibration"][key]["error"]
        assert error == pytest.approx(expected, abs=1e-5)
    temperature, cuts = values_of(order)
    assert decision.temperature == pytest.approx(temperature, abs=1e-5)
    if "tune_thresholds" in flags:
        assert decision.thresholds == pytest.approx(cuts)
        assert [*tuned.report["cuts"].values()] == pytest.approx(cuts)
    else:
        assert decision.log_weights == pytest.approx([*logs] if weights else [])


def test_scores_without_thresholds_are_printed(capsys):
    logits, gold = drawn(MULTI_LABEL, 1.0, 5, -0.5, 97)
    _, tuned = fit(SEVERAL, logits, gold, tune_thresholds=True)
    both = (logits >= 0).astype(int), predicted(SEVERAL, tuned)
    macro = [f1_score(gold, x, average="macro", zero_division=0) for x in both]
    exact = [(gold == x).all(-1).mean() for x in both]
    of_a = [f1_score(gold[:, 0], x[:, 0], zero_division=0) for x in both]
    err = capsys.readouterr().err
    assert "macro_f1 {:.4f} -> {:.4f}".format(*macro) in err
    assert "accuracy {:.4f} -> {:.4f}".format(*exact) in err
    assert "(F1 {:.4f} -> {:.4f}), b ".format(*of_a) in err
    assert tuned.report["before_tuning"]["macro_f1"] == macro[0]


@pytest.mark.parametrize(
    ("counts", "positive", "expected"),
    [
        ((19, 2), None, "spam"),
        ((2, 19), None, "ham"),
        ((9, 9), None, "spam"),
        ((19, 2), "spam", "spam"),
        ((19, 2), "ham", "ham"),
    ],
)
def test_the_rarer_of_two_labels_has_a_threshold(
    capsys, counts, positive, expected
):
    gold = np.repeat([0, 1], counts)
    rng = np.random.default_rng(3)
    logits = rng.normal(0, 1, (len(gold), 2)).astype("f4")
    decision, tuned = fit(
        TWO, logits, gold, tune_thresholds=True, positive_label=positive
    )
    (curve,) = tuned.report["curves"].values()
    assert {*tuned.report["cuts"]} == {*tuned.report["curves"]} == {expected}
    number = TWO.names.index(expected)
    margins = logits[:, number] - logits[:, 1 - number]
    is_positive = gold == number
    cut = fitting.cut_of(margins, is_positive.astype(int))
    assert decision.thresholds[number] == cut
    answers = postprocessing.predictions(logits, CLASSES, decision)
    assert ((answers == number) == (margins >= cut)).all()
    for threshold, precision, recall in curve:
        found = margins >= np.float32(threshold)
        assert precision == precision_score(is_positive, found)
        assert recall == recall_score(is_positive, found)
    assert math.isclose(curve[0][2], 1.0)
    told = f"--positive_label={expected}, the rarer label\n"
    assert (told in capsys.readouterr().err) == (positive is None)
