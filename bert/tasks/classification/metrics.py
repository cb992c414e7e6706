"""Per-example losses, the metrics of GLUE, and ranking metrics.

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
        labels: int [N] class ids, int [N, C] zeros and ones, or float [N].
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
        # log(1 + e^x) - y x, the cross entropy of a sigmoid.
        return (np.logaddexp(0.0, logits) - labels * logits).mean(-1)
    return (logits[:, 0] - labels) ** 2


def scores(
    metrics: tuple[str, ...], labels: np.ndarray, predicted: np.ndarray
) -> dict[str, float]:
    """Computes metrics.

    Args:
        metrics: names of metrics in `METRICS`.
        labels: the labels, [N] or [N, C].
        predicted: the predictions, in the same shape.

    Returns:
        metric -> value; correlations with a constant are 0.
    """
    return {name: float(METRICS[name](labels, predicted)) for name in metrics}


def ranking(
    queries: list[str], relevant: np.ndarray, ranks: np.ndarray
) -> dict[str, float]:
    """Computes the reranking metrics of sentence-transformers.

    Args:
        queries: the query of each of N examples; equal queries are ranked
            together.
        relevant: float [N]. 1 for relevant texts, 0 for others.
        ranks: float [N]. Scores; the highest is ranked first.

    Returns:
        mrr@10 and ndcg@10, the means over queries with texts of both kinds;
        empty without such a query.
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
    """Makes a correlation that is 0 for constants, where it is undefined."""

    def correlate(labels: np.ndarray, predicted: np.ndarray) -> float:
        if np.ptp(labels) == 0 or np.ptp(predicted) == 0:
            return 0.0
        return function(labels, predicted)

    return correlate


# F1 of class 1, as for MRPC and QQP.
_f1 = functools.partial(sklearn_metrics.f1_score, zero_division=0.0)

METRICS = {
    ACCURACY: sklearn_metrics.accuracy_score,
    F1: _f1,
    # Pools the counts of all labels of all examples.
    MICRO_F1: lambda labels, predicted: _f1(labels.ravel(), predicted.ravel()),
    # The unweighted mean over the classes.
    MACRO_F1: functools.partial(_f1, average="macro"),
    MATTHEWS: _correlation(sklearn_metrics.matthews_corrcoef),
    PEARSON: _correlation(lambda *both: stats.pearsonr(*both).statistic),
    MAE: sklearn_metrics.mean_absolute_error,
    SPEARMAN: _correlation(lambda *both: stats.spearmanr(*both).statistic),
}
