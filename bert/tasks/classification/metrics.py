"""Predictions from logits, and the metrics of GLUE.

Accuracy and F1 are fractions; Matthews and both correlations are in [-1, 1].
"""

from collections.abc import Callable

import numpy as np
from scipy import stats
from sklearn import metrics as sklearn_metrics

from bert.data.label_kinds import CLASSES, MULTI_LABEL
from bert.tasks.classification.tasks import (
    ACCURACY,
    F1,
    MACRO_F1,
    MATTHEWS,
    MICRO_F1,
    PEARSON,
    SPEARMAN,
)


def losses(logits: np.ndarray, labels: np.ndarray, kind: str) -> np.ndarray:
    """Computes the training loss of each example.

    Args:
        logits: float32 [N, C].
        labels: in the form that `answers` returns.
        kind: the kind of labels.

    Returns:
        float64 [N]: cross entropy in nats; for MULTI_LABEL, its mean over the
        labels; for REGRESSION, the squared error.
    """
    logits = np.asarray(logits, np.float64)
    if kind == CLASSES:
        every = np.logaddexp.reduce(logits, -1)
        return every - logits[np.arange(len(logits)), labels]
    if kind == MULTI_LABEL:
        # log(1 + e^x) - y x, the cross entropy of a sigmoid, in one step.
        return (np.logaddexp(0.0, logits) - labels * logits).mean(-1)
    return (logits[:, 0] - labels) ** 2


def scores(
    metrics: tuple[str, ...], labels: np.ndarray, predicted: np.ndarray
) -> dict[str, float]:
    """Computes metrics.

    Args:
        metrics: names of `METRICS`.
        labels: the labels, [N] or [N, C].
        predicted: the predictions of `answers`, in the same shape.

    Returns:
        metric -> value; a correlation with a constant is 0.
    """
    return {name: float(METRICS[name](labels, predicted)) for name in metrics}


def _accuracy(labels: np.ndarray, predicted: np.ndarray) -> float:
    return sklearn_metrics.accuracy_score(labels, predicted)


def _f1(labels: np.ndarray, predicted: np.ndarray) -> float:
    """F1 of class 1, as for MRPC and QQP."""
    return sklearn_metrics.f1_score(
        labels, predicted, pos_label=1, zero_division=0.0
    )


def _micro_f1(labels: np.ndarray, predicted: np.ndarray) -> float:
    """F1 over all labels of all examples together."""
    return _f1(np.ravel(labels), np.ravel(predicted))


def _macro_f1(labels: np.ndarray, predicted: np.ndarray) -> float:
    """Mean of the F1 of all classes, whatever their sizes."""
    return sklearn_metrics.f1_score(
        labels, predicted, average="macro", zero_division=0.0
    )


def _matthews(labels: np.ndarray, predicted: np.ndarray) -> float:
    if np.ptp(labels) == 0 or np.ptp(predicted) == 0:
        return 0.0  # undefined
    return sklearn_metrics.matthews_corrcoef(labels, predicted)


def _correlation(name: str) -> Callable[[np.ndarray, np.ndarray], float]:
    def correlate(labels: np.ndarray, predicted: np.ndarray) -> float:
        if len(labels) < 2 or np.ptp(labels) == 0 or np.ptp(predicted) == 0:
            return 0.0  # undefined
        return getattr(stats, name)(labels, predicted).statistic

    return correlate


METRICS = {
    ACCURACY: _accuracy,
    F1: _f1,
    MICRO_F1: _micro_f1,
    MACRO_F1: _macro_f1,
    MATTHEWS: _matthews,
    PEARSON: _correlation("pearsonr"),
    SPEARMAN: _correlation("spearmanr"),
}
