"""Scores of classes, for reports; importing this module takes a second."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn import metrics

_MOST_LABELS = 200  # largest confusion matrix


def of_classes(gold: ArrayLike, found: ArrayLike, names: Sequence[str]) -> dict:
    """Compares the classes of examples with the predicted ones.

    Args:
        gold, found: int [N]. True and predicted class ids of the examples.
        names: sequence of str. Names of the C classes.

    Returns:
        Dict with `labels`, `per_class` and `confusion_matrix`, a row for each
        true class.
    """
    ids = list(range(len(names)))
    report = {"labels": list(names)}

    # The matrix has C * C numbers: with many labels it would fill the report.
    if len(names) <= _MOST_LABELS:
        matrix = metrics.confusion_matrix(gold, found, labels=ids)
        report["confusion_matrix"] = matrix.tolist()
    return report | {"per_class": per_class(gold, found, names)}


def per_class(gold, found, names: Sequence[str]) -> dict[str, dict]:
    """Precision, recall, F1 and support of each class.

    Args:
        gold, found: int [N]. True and predicted class ids; or int [N, C] of 0
            and 1 for several labels per example.
        names: sequence of str. Names of the C classes.
    """
    gold, found = np.asarray(gold), np.asarray(found)
    if gold.ndim == 2:  # sklearn reads [N, 1] as ids, so add a column
        gold, found = (np.pad(x, ((0, 0), (0, 1))) for x in (gold, found))
    scores = metrics.precision_recall_fscore_support(
        gold, found, labels=list(range(len(names))), zero_division=0.0
    )
    keys = ("precision", "recall", "f1", "support")
    return {
        name: dict(zip(keys, [*map(float, row[:3]), int(row[3])]))
        for name, row in zip(names, zip(*scores))
    }
