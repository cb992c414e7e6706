"""Weights of labels in the loss of training, --class_weights."""

import math

import numpy as np
from numpy.typing import NDArray

from bert.common.errors import UserError
from bert.data.labels import CLASSES, Labels
from bert.tasks.classification.settings import BALANCED


def of_labels(
    given: tuple[str, ...], labels: Labels, gold: NDArray
) -> tuple[float, ...]:
    """Computes the weight of each label.

    Balanced weights are N / (C n), as in scikit-learn, so the mean weight of
    the examples is 1. With several labels, the weight of a positive is the
    number of texts without the label, divided by the number with it.

    Args:
        given: tuple of str. The value of --class_weights: ("balanced",), or
            `name=weight` entries; other labels have the weight 1.
        labels: the labels of the task, not REGRESSION.
        gold: the training labels, int [N] or [N, C].

    Raises:
        UserError: a label is unknown, or a weight is not a positive number.
    """
    if given == (BALANCED,):
        if labels.kind == CLASSES:
            counts = np.bincount(gold, minlength=labels.size)
            rests = np.full(labels.size, len(gold) / labels.size)
        else:
            counts = gold.sum(0)
            rests = len(gold) - counts

        # A label of all texts, or without texts, keeps the weight 1.
        usable = (counts > 0) & (rests > 0)
        weights = np.where(usable, rests / np.maximum(counts, 1), 1.0)
        return tuple(weights.tolist())

    weights = dict.fromkeys(labels.names, 1.0)
    for pair in given:
        name, _, text = pair.rpartition("=")
        if name.strip() not in weights:
            raise UserError(
                f"--class_weights={pair}",
                expected=f"{BALANCED}, or name=weight with one of the names "
                f"{', '.join(labels.names[:10])}",
            )
        weights[name.strip()] = _weight(pair, text)
    return tuple(weights.values())


def _weight(pair: str, text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise UserError(f"--class_weights={pair}", expected="a weight above 0")
    return weight
