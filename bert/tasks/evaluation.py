"""Baselines, errors and warnings of the evaluations of several tasks."""

import collections
import heapq
import math
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Kinds of baselines, see `tasks.eval_report`.
MAJORITY, CHANCE = "majority", "chance"
FREQUENCIES, UNIGRAMS = "frequencies", "unigrams"
OVERLAP, BEFORE = "word_overlap", "before"
TFIDF, FROZEN, COSINE = "tfidf", "frozen", "cosine"
MAX_FITTED = 10_000  # training examples of a linear model; more take minutes
_NEARLY_ALL = 0.99  # fraction of predictions
_WORST = 20  # number of errors to list
_SHOWN = 20  # names in a message


def baselines_of_classes(
    gold: ArrayLike, train: ArrayLike, num_classes: int
) -> dict[str, float]:
    """Baselines of the accuracy and the cross entropy of classes.

    Args:
        gold: int [N]. True class ids of the evaluated examples.
        train: int [M]. Class ids of training.
        num_classes: int. C, the classes of training; other ids of `gold` are
            always wrong.
    """
    gold = np.asarray(gold, np.int64)
    counts = np.bincount(np.asarray(train, np.int64), minlength=num_classes)
    found = {
        f"accuracy/{MAJORITY}": float((gold == counts.argmax()).mean()),
        f"accuracy/{CHANCE}": 1 / num_classes,
        f"loss/{CHANCE}": math.log(num_classes),
    }
    # A class without training examples has the probability 0.
    if np.isin(gold, np.flatnonzero(counts)).all():
        frequencies = counts / counts.sum()
        found[f"loss/{FREQUENCIES}"] = float(-np.log(frequencies[gold]).mean())
    return found


def drawn_to_fit(count: int) -> NDArray:
    """Draws the training examples that a linear model is fitted to.

    Args:
        count: int. Number of training examples.

    Returns:
        int [at most MAX_FITTED]. Numbers of examples, in random order.
    """
    return np.random.default_rng(0).permutation(count)[:MAX_FITTED]


def worst(errors: Iterable[dict]) -> list[dict]:
    """Returns the errors with the highest `probability`, highest first."""
    return heapq.nlargest(_WORST, errors, key=lambda x: x["probability"])


def one_prediction_warnings(predictions: Sequence, gold: Sequence) -> list[str]:
    """Returns a warning if a model predicts the same for nearly all examples.

    Args:
        predictions: sequence. Predicted label of each of N examples, or list of
            labels.
        gold: sequence. True label or labels of each. The same label in nearly
            all of them is not a mistake of the model, unless it predicts
            nothing else.
    """
    count = len(predictions)
    ((first, most),) = collections.Counter(map(_key, predictions)).most_common(
        1
    )

    # A single example always has a single prediction.
    right = sum(_key(x) == first for x in gold)
    if count == 1 or most < _NEARLY_ALL * count or right >= most < count:
        return []
    of_all = f"all {count:,}" if most == count else f"{most:,} of {count:,}"
    shown = predictions[[*map(_key, predictions)].index(first)]
    return [f"{of_all} predictions are {shown!r}; train for more steps"]


def _key(label: object) -> Hashable:
    """A label, or a list of labels, as a key."""
    return tuple(label) if isinstance(label, list) else label


def first_names(names: Iterable[str]) -> str:
    """Joins the first names for a message; adds the total if truncated."""
    names = list(names)
    shown = ", ".join(names[:_SHOWN])
    return f"{shown}, ... ({len(names)})" if len(names) > _SHOWN else shown
