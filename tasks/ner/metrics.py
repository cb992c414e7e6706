"""Scores of predicted labels: those of `conlleval`, the CoNLL-2003 scorer.

An entity counts as found if its first word, its last word and its type are
all right.
"""

import collections
from collections.abc import Iterable

from tasks.ner import entities


def score_entities(
    gold: Iterable[list[str]], predicted: Iterable[list[str]]
) -> dict[str, float]:
    """Scores entities.

    Args:
        gold: labels of each sentence, in any scheme.
        predicted: as many labels of each sentence.

    Returns:
        precision, recall and f1 of all entities, and of each type that was
        there or predicted, as f1_PER; accuracy, of labels as they are
        written. From 0 to 1; 0 where there was nothing to divide by.
    """
    right, there, found = (collections.Counter() for _ in range(3))
    words = hits = 0
    for labels, guesses in zip(gold, predicted, strict=True):
        words += len(labels)
        hits += sum(a == b for a, b in zip(labels, guesses, strict=True))
        true, guessed = entities.find(labels), entities.find(guesses)
        there.update(kind for *_, kind in true)
        found.update(kind for *_, kind in guessed)
        right.update(kind for *_, kind in set(true) & set(guessed))
    scores = {"accuracy": hits / words if words else 0.0}
    scores |= _scores(right.total(), found.total(), there.total())
    for kind in sorted(there | found):
        one = _scores(right[kind], found[kind], there[kind])
        scores |= {f"{name}_{kind}": value for name, value in one.items()}
    return scores


def score_labels(
    gold: Iterable[list[str]], predicted: Iterable[list[str]]
) -> dict[str, float]:
    """Scores labels that mark no entities, such as parts of speech.

    Args:
        gold: labels of each sentence.
        predicted: as many labels of each sentence.

    Returns:
        accuracy, of words.
    """
    hits = [
        label == guess
        for labels, guesses in zip(gold, predicted, strict=True)
        for label, guess in zip(labels, guesses, strict=True)
    ]
    return {"accuracy": sum(hits) / len(hits) if hits else 0.0}


def _scores(right: int, found: int, there: int) -> dict[str, float]:
    return {
        "precision": right / found if found else 0.0,
        "recall": right / there if there else 0.0,
        # The harmonic mean of the two.
        "f1": 2 * right / (found + there) if right else 0.0,
    }
