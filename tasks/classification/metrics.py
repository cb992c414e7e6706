"""Logits to answers, and answers to the scores that GLUE is judged by.

Accuracy and F1 as fractions, Matthews and both correlations from -1 to 1.
"""

from collections.abc import Callable

import numpy as np

from tasks.classification.examples import CLASSES, MULTI_LABEL, REGRESSION

ACCURACY, F1, MATTHEWS = "accuracy", "f1", "matthews"
PEARSON, SPEARMAN = "pearson", "spearman"
MICRO_F1 = "micro_f1"
METRICS_OF = {  # kind of labels -> what is told if a task names none
    CLASSES: (ACCURACY,),
    MULTI_LABEL: (MICRO_F1, ACCURACY),
    REGRESSION: (PEARSON, SPEARMAN),
}


def probabilities(logits: np.ndarray, kind: str) -> np.ndarray:
    """What the network believes.

    Args:
        logits: float32 [N, C].
        kind: of labels.

    Returns:
        float32 [N, C]: of each class; for MULTI_LABEL of each label apart;
        for REGRESSION the number itself.
    """
    logits = np.asarray(logits, np.float64)
    if kind == CLASSES:
        shifted = np.exp(logits - logits.max(-1, keepdims=True))
        found = shifted / shifted.sum(-1, keepdims=True)
    elif kind == MULTI_LABEL:
        found = np.exp(-np.logaddexp(0.0, -logits))
    else:
        found = logits
    return found.astype(np.float32)


def answers(logits: np.ndarray, kind: str) -> np.ndarray:
    """The network's answers, of the shape of the labels.

    Args:
        logits: float32 [N, C].
        kind: of labels.

    Returns:
        CLASSES: int64 [N]; MULTI_LABEL: int64 [N, C], 1 from a probability
        of one half on; REGRESSION: float32 [N].
    """
    if kind == CLASSES:
        return logits.argmax(-1)
    if kind == MULTI_LABEL:
        return (logits >= 0).astype(np.int64)
    return logits[:, 0]


def losses(logits: np.ndarray, labels: np.ndarray, kind: str) -> np.ndarray:
    """The loss of each row: what training minimizes.

    Args:
        logits: float32 [N, C].
        labels: as `answers` returns them.
        kind: of labels.

    Returns:
        float64 [N]: cross entropy in nats; for MULTI_LABEL its mean over the
        labels; for REGRESSION the squared error.
    """
    logits = np.asarray(logits, np.float64)
    if kind == CLASSES:
        every = np.logaddexp.reduce(logits, -1)
        return every - logits[np.arange(len(logits)), labels]
    if kind == MULTI_LABEL:
        return (np.logaddexp(0.0, logits) - labels * logits).mean(-1)
    return (logits[:, 0] - labels) ** 2


def scores(
    metrics: tuple[str, ...], labels: np.ndarray, found: np.ndarray
) -> dict[str, float]:
    """Scores by their names.

    Args:
        metrics: names of `METRICS`.
        labels: what is right, [N] or [N, C].
        found: `answers`, of the same shape.

    Returns:
        metric -> value; a correlation of numbers that are all alike is 0.
    """
    return {name: float(METRICS[name](labels, found)) for name in metrics}


def _accuracy(labels: np.ndarray, found: np.ndarray) -> float:
    from sklearn import metrics

    return metrics.accuracy_score(labels, found)


def _f1(labels: np.ndarray, found: np.ndarray) -> float:
    """F1 of the class 1, as for MRPC and QQP."""
    from sklearn import metrics

    return metrics.f1_score(labels, found, pos_label=1, zero_division=0.0)


def _micro_f1(labels: np.ndarray, found: np.ndarray) -> float:
    """F1 over all labels of all rows as one."""
    return _f1(np.ravel(labels), np.ravel(found))


def _matthews(labels: np.ndarray, found: np.ndarray) -> float:
    from sklearn import metrics

    if np.ptp(labels) == 0 or np.ptp(found) == 0:
        return 0.0  # it is not defined
    return metrics.matthews_corrcoef(labels, found)


def _correlation(name: str) -> Callable[[np.ndarray, np.ndarray], float]:
    def correlate(labels: np.ndarray, found: np.ndarray) -> float:
        from scipy import stats

        if len(labels) < 2 or np.ptp(labels) == 0 or np.ptp(found) == 0:
            return 0.0  # it is not defined
        return getattr(stats, name)(labels, found).statistic

    return correlate


METRICS = {
    ACCURACY: _accuracy,
    F1: _f1,
    MICRO_F1: _micro_f1,
    MATTHEWS: _matthews,
    PEARSON: _correlation("pearsonr"),
    SPEARMAN: _correlation("spearmanr"),
}
