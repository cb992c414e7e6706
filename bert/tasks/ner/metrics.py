"""Metrics of predicted labels, as in CoNLL-2003's `conlleval`.

An entity is correct if its first word, last word and type are correct.
"""

import collections
from collections.abc import Iterable

from bert.tasks.ner import entities


def score_entities(
    gold: list[list[str]], predicted: list[list[str]]
) -> dict[str, float]:
    """Scores predicted entities.

    Args:
        gold: labels of each sentence, in any scheme.
        predicted: predicted labels of each sentence.

    Returns:
        precision, recall and f1 of all entities, and of each type, such as
        f1_PER; accuracy of the labels. Values are from 0 to 1, and 0 where
        the denominator is 0.
    """
    right, actual, found = (collections.Counter() for _ in range(3))
    for labels, guesses in zip(gold, predicted, strict=True):
        true, guessed = entities.find(labels), entities.find(guesses)
        actual.update(kind for *_, kind in true)
        found.update(kind for *_, kind in guessed)
        right.update(kind for *_, kind in set(true) & set(guessed))
    scores = score_labels(gold, predicted)
    scores |= _scores(right.total(), found.total(), actual.total())

    # Includes types that are only predicted; their precision is 0. A type
    # without a name is the only one.
    for kind in sorted({*actual, *found} - {""}):
        one = _scores(right[kind], found[kind], actual[kind])
        scores |= {f"{name}_{kind}": value for name, value in one.items()}
    return scores


def score_labels(
    gold: Iterable[list[str]], predicted: Iterable[list[str]]
) -> dict[str, float]:
    """Scores labels without entities, such as parts of speech.

    Args:
        gold: labels of each sentence.
        predicted: predicted labels of each sentence.

    Returns:
        accuracy over the words.
    """
    hits = [
        label == guess
        for labels, guesses in zip(gold, predicted, strict=True)
        for label, guess in zip(labels, guesses, strict=True)
    ]
    return {"accuracy": sum(hits) / len(hits) if hits else 0.0}


def _scores(right: int, found: int, actual: int) -> dict[str, float]:
    return {
        "precision": right / found if found else 0.0,
        "recall": right / actual if actual else 0.0,
        # The harmonic mean of precision and recall.
        "f1": 2 * right / (found + actual) if right else 0.0,
    }
