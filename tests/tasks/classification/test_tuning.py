import numpy as np
import pytest
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import f1_score

from bert.data import postprocessing
from bert.data.labels import CLASSES, MULTI_LABEL, Labels
from bert.tasks.classification import fitting
from bert.tasks.classification.glue import TextExample
from bert.tasks.classification.settings import Scoring
from bert.tasks.classification.task import TextClassification

TWO, THREE = Labels(names=("ham", "spam")), Labels(names=("a", "b", "c"))
SEVERAL = Labels(MULTI_LABEL, ("a", "b", "c"))


class Logits(ClassifierMixin, BaseEstimator):
    """A classifier whose inputs are its logits."""

    classes_ = np.arange(3)

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, x, y):
        return self

    def decision_function(self, x):
        return x

    def predict(self, x):
        return x.argmax(-1)


def drawn(count=997, scale=1.0, seed=7):
    """Logits, and classes drawn from their probabilities."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (count, 3))
    chances = special.softmax(logits, -1)
    gold = (chances.cumsum(-1) < rng.random((count, 1))).sum(-1)
    return (logits * scale).astype("f4"), gold


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


@pytest.mark.parametrize("seed", range(5))
def test_a_cut_has_the_highest_f1(seed):
    rng = np.random.default_rng(seed)
    gold = (rng.random(31) < 0.2).astype(int)
    margins = rng.normal(gold, 1.0).round(1).astype("f4")
    cut = fitting.cut_of(margins, gold)
    found = f1_score(gold, margins >= cut)
    all_cuts = [f1_score(gold, margins >= x) for x in np.unique(margins)]
    assert found == max(all_cuts) and cut not in margins


def test_a_label_of_no_text_keeps_its_cut():
    assert fitting.cut_of(np.ones(3, "f4"), np.zeros(3, int)) == 0.0


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_a_temperature_is_that_of_scikit_learn(scale):
    logits, gold = drawn(scale=scale)
    found, _ = fit(THREE, logits, gold, calibrate=True)
    assert found.temperature == pytest.approx(scale, rel=0.1)
    theirs = CalibratedClassifierCV(
        FrozenEstimator(Logits()), method="temperature"
    ).fit(logits, gold)
    np.testing.assert_allclose(
        postprocessing.probabilities(logits, CLASSES, found),
        theirs.predict_proba(logits),
        atol=1e-3,
    )


def test_weights_of_training_are_taken_from_the_probabilities():
    logits, gold = drawn(scale=2.0)
    weights = (0.2, 1.0, 5.0)
    _, plain = fit(THREE, logits, gold, calibrate=True)
    shifted = (logits + np.log(weights)).astype("f4")
    decision, weighted = fit(THREE, shifted, gold, weights, calibrate=True)
    before, after = (
        weighted.report["calibration"][key]["error"]
        for key in ("before", "after")
    )
    assert after == pytest.approx(plain.report["calibration"]["after"]["error"])
    assert after < 0.05 < before
    assert decision.temperature == pytest.approx(2.0, rel=0.1)
    assert weighted.predicted == plain.predicted
    assert (predicted(THREE, weighted) != shifted.argmax(-1)).any()


def test_errors_of_calibration_by_hand():
    """Those of the predictions that are given, not of the most probable."""
    chances = np.array([[0.9, 0.1], [0.9, 0.1], [0.3, 0.7]], "f4")
    gold = np.array([0, 1, 1])
    logits = np.log(chances)
    found = fitting.calibration(logits, gold, chances.argmax(-1), CLASSES)
    assert found["error"] == pytest.approx((2 * 0.4 + 1 * 0.3) / 3)
    assert [x[1:] for x in found["bins"]] == [[1.0, 1], [0.5, 2]]
    found = fitting.calibration(logits, gold, np.array([1, 1, 1]), CLASSES)
    assert found["error"] == pytest.approx((2 * 0.4 + 1 * 0.3) / 3)
    assert [x[1:] for x in found["bins"]] == [[0.5, 2], [1.0, 1]]
    both = np.array([[1, 1]])
    logits = special.logit(chances[:1])
    of_labels = fitting.calibration(logits, both, both, MULTI_LABEL)
    assert of_labels["error"] == pytest.approx((0.1 + 0.9) / 2)


@pytest.mark.parametrize("cuts", [False, True])
def test_the_printed_error_is_of_the_predictions_that_are_given(cuts):
    rng = np.random.default_rng(11)
    gold = (rng.random(401) < 0.1).astype(int)
    logits = np.stack([np.zeros(401), rng.normal(2 * gold, 1)], -1).astype("f4")
    flags = {"calibrate": True, "tune_thresholds": cuts}
    _, tuned = fit(TWO, logits, gold, (0.5, 5.0), **flags)
    right = (predicted(TWO, tuned) == gold).mean()
    bins = tuned.report["calibration"]["after"]["bins"]
    shares = [share * count for _, share, count in bins]
    assert sum(shares) / 401 == pytest.approx(right)
    # Predictions by a threshold may have a probability below one half.
    assert (min(mean for mean, _, _ in bins) < 0.5) == cuts


def test_scores_without_thresholds_are_printed(capsys):
    rng = np.random.default_rng(5)
    gold = (rng.random((97, 3)) < [0.1, 0.3, 0.5]).astype(int)
    logits = rng.normal(gold - 1.5, 1.0).astype("f4")
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
    ("positive", "expected"),
    [(None, "spam"), ("spam", "spam"), ("ham", "ham")],
)
def test_one_of_two_labels_has_a_cut(capsys, positive, expected):
    rng = np.random.default_rng(3)
    gold = (rng.random(211) < 0.1).astype(int)
    logits = rng.normal(0, 1, (211, 2)).astype("f4")
    logits[:, 1] += gold
    decision, tuned = fit(
        TWO, logits, gold, tune_thresholds=True, positive_label=positive
    )
    assert (
        tuned.report["cuts"].keys()
        == {expected}
        == tuned.report["curves"].keys()
    )
    number = TWO.names.index(expected)
    margins = logits[:, number] - logits[:, 1 - number]
    cut = fitting.cut_of(margins, (gold == number).astype(int))
    assert decision.thresholds[number] == cut
    answers = postprocessing.predictions(logits, CLASSES, decision)
    assert ((answers == number) == (margins >= cut)).all()
    told = f"--positive_label={expected}, the rarer label\n"
    assert (told in capsys.readouterr().err) == (positive is None)


def test_each_half_is_answered_by_the_cuts_of_the_other():
    rng = np.random.default_rng(5)
    gold = (rng.random((97, 3)) < [0.1, 0.3, 0.5]).astype(int)
    logits = rng.normal(gold - 1.0, 1.0).astype("f4")
    flags = {"tune_thresholds": True, "calibrate": True}
    decision, tuned = fit(SEVERAL, logits, gold, **flags)
    found = predicted(SEVERAL, tuned)
    order = np.lexsort(gold.T)
    for half, other in ((order[::2], order[1::2]), (order[1::2], order[::2])):
        cuts = [
            fitting.cut_of(logits[other, i], gold[other, i]) for i in range(3)
        ]
        expected = logits[half] >= np.array(cuts, "f4")
        assert (found[half] == expected).all()
    whole = [fitting.cut_of(logits[:, i], gold[:, i]) for i in range(3)]
    assert list(decision.thresholds) == whole
    assert list(tuned.report["cuts"].values()) == whole
