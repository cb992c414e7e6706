"""Losses of examples, and the metrics of GLUE.

Accuracy and F1 are fractions; Matthews and both correlations are in [-1, 1].
"""

import functools
from collections.abc import Callable

import numpy as np
from scipy import special, stats
from sklearn import metrics as sklearn_metrics

from bert.data.label_kinds import CLASSES, MULTI_LABEL
from bert.tasks.classification.tasks import (
    ACCURACY,
    F1,
    MACRO_F1,
    MAE,
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
        logs = special.log_softmax(logits, -1)
        return -logs[np.arange(len(logs)), labels]
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


def ranking(
    queries: list[str], relevant: np.ndarray, ranks: np.ndarray
) -> dict[str, float]:
    """Scores the order of the texts of each query, as sentence-transformers.

    Args:
        queries: of N examples; those of one query are ranked.
        relevant: float [N], 0 or 1.
        ranks: float [N], the highest first.

    Returns:
        MRR and NDCG of the first 10; none where no query has texts of both
        kinds.
    """
    rows: dict[str, list[int]] = {}
    for index, query in enumerate(queries):
        rows.setdefault(query, []).append(index)

    gains, reciprocals, shares = 1 / np.log2(np.arange(2, 12)), [], []
    for chosen in rows.values():
        hits = relevant[chosen][np.argsort(-ranks[chosen], kind="stable")]
        if hits.min() == hits.max():
            continue
        best, top = np.sort(hits)[:-11:-1], hits[:10]
        shares.append((top @ gains[: len(top)]) / (best @ gains[: len(best)]))
        reciprocals.append(top.max() / (1 + top.argmax()))
    if not shares:
        return {}
    return {
        "mrr@10": float(np.mean(reciprocals)),
        "ndcg@10": float(np.mean(shares)),
    }


def _correlation(function: Callable) -> Callable:
    """A correlation that is 0 where it is not defined, of a constant."""

    def correlate(labels: np.ndarray, predicted: np.ndarray) -> float:
        if np.ptp(labels) == 0 or np.ptp(predicted) == 0:
            return 0.0
        return function(labels, predicted)

    return correlate


# Of class 1, as for MRPC and QQP.
_f1 = functools.partial(sklearn_metrics.f1_score, zero_division=0.0)

METRICS = {
    ACCURACY: sklearn_metrics.accuracy_score,
    F1: _f1,
    # Over all labels of all examples together.
    MICRO_F1: lambda labels, predicted: _f1(labels.ravel(), predicted.ravel()),
    # The mean over the classes, whatever their sizes.
    MACRO_F1: functools.partial(_f1, average="macro"),
    MATTHEWS: _correlation(sklearn_metrics.matthews_corrcoef),
    PEARSON: _correlation(lambda *both: stats.pearsonr(*both).statistic),
    MAE: sklearn_metrics.mean_absolute_error,
    SPEARMAN: _correlation(lambda *both: stats.spearmanr(*both).statistic),
}
