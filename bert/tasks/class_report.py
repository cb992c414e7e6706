"""Class metrics, their baselines and the worst errors, for `eval_report`."""

import heapq
import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from sklearn import metrics

from bert.common.progress import log
from bert.tasks.eval_report import CHANCE, FREQUENCIES, MAJORITY

_WORST = 20  # number of errors to list
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


def baselines_of_classes(
    gold: ArrayLike, num_classes: int, accuracy: str, loss: str
) -> dict[str, float]:
    """Baselines of the accuracy and the cross entropy of classes.

    Args:
        gold: int [N]. True class ids of the examples.
        num_classes: int. C.
        accuracy, loss: str. Names of the metrics.
    """
    counts = np.bincount(np.asarray(gold, np.int64), minlength=num_classes)
    return {
        f"{accuracy}/{MAJORITY}": float(counts.max() / counts.sum()),
        f"{accuracy}/{CHANCE}": 1 / num_classes,
        f"{loss}/{FREQUENCIES}": float(stats.entropy(counts)),
        f"{loss}/{CHANCE}": math.log(num_classes),
    }


def worst(errors: Iterable[dict]) -> list[dict]:
    """Returns the errors with the highest `probability`, highest first."""
    return heapq.nlargest(_WORST, errors, key=lambda x: x["probability"])


def log_one_answer(answers: Sequence) -> None:
    """Warns if a model predicts the same for all examples.

    Args:
        answers: sequence. Predicted label of each example, or list of labels.
    """
    first, *others = answers

    # A single example always has a single prediction.
    if others and all(answer == first for answer in others):
        log(f"warning: all {len(answers):,} predictions are {first!r}")
