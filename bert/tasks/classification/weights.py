"""Weights of labels in the loss."""

import math

import numpy as np

from bert.common.errors import UserError
from bert.data.label_kinds import CLASSES, Labels
from bert.tasks.classification.score_settings import BALANCED


def of_labels(
    given: tuple[str, ...], labels: Labels, gold: np.ndarray
) -> tuple[float, ...]:
    """The weight of each label.

    Balanced, all classes have the same weight in the loss, and examples a
    mean weight of 1: N / (C n), as in scikit-learn. Of several labels, the
    texts with a label weigh as much as those without.

    Args:
        given: of --class_weights: `name=weight`, others weigh 1; or balanced.
        labels: the labels of the task, no numbers.
        gold: those of training, int [N] or [N, C].

    Raises:
        UserError: a label is unknown, or a weight no positive number.
    """
    if given == (BALANCED,):
        if labels.kind == CLASSES:
            counts = np.bincount(gold, minlength=labels.size)
            rests = np.full(labels.size, len(gold) / labels.size)
        else:
            counts = gold.sum(0)
            rests = len(gold) - counts

        # A label of all texts, or of none, has nothing to be balanced with.
        usable = (counts > 0) & (rests > 0)
        weights = np.where(usable, rests / np.maximum(counts, 1), 1.0)
        return tuple(weights.tolist())

    weights = dict.fromkeys(labels.names, 1.0)
    for pair in given:
        name, _, text = pair.rpartition("=")
        if name.strip() not in weights:
            raise UserError(
                f"--class_weights={pair}",
                expected=f"{BALANCED}, or name=weight of "
                f"{', '.join(labels.names[:10])}",
            )
        weights[name.strip()] = _number(pair, text)
    return tuple(weights.values())


def _number(pair: str, text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise UserError(f"--class_weights={pair}", expected="a weight above 0")
    return weight
