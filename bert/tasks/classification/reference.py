"""A linear model of the words, as a reference that reads the texts.

    texts -> token ids -> TF-IDF -> logistic regression, or ridge of numbers

It is fitted to the examples of training in seconds, so that a network that is
worse is noticed.
"""

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

from bert.data.label_kinds import MULTI_LABEL, REGRESSION
from bert.data.text.tokenizer import Tokenizer
from bert.tasks.classification.examples import TextExample
from bert.tasks.classification.inputs import Part

_MOST = 10_000  # examples to fit to; more take minutes
_STEPS = 1000


def answers(
    train: Part, part: Part, kind: str, tokenizer: Tokenizer
) -> np.ndarray | None:
    """Answers of the linear model for the texts of a file.

    Args:
        train: the examples of training.
        part: the N examples of the file.
        kind: the kind of labels.
        tokenizer: of the network; whole texts are read, not truncated ones.

    Returns:
        as `label_kinds.answers`; None if no text of training has a token.
    """
    drawn = np.random.default_rng(0).permutation(len(train.examples))[:_MOST]
    bags = _bags([train.examples[i] for i in drawn], tokenizer)
    if not any(bags):
        return None
    vectorizer = TfidfVectorizer(analyzer=list, sublinear_tf=True)
    known = vectorizer.fit_transform(bags)
    new = vectorizer.transform(_bags(part.examples, tokenizer))

    gold = train.labels[drawn]
    if kind == REGRESSION:
        return Ridge().fit(known, gold).predict(new)
    if kind == MULTI_LABEL:
        return np.stack([_classes(known, y, new) for y in gold.T], -1)
    return _classes(known, gold, new)


def _bags(examples: list[TextExample], tokenizer: Tokenizer) -> list[list[int]]:
    """The token ids of each example, of both of its texts."""
    lines = [f"{example.text} {example.text_b}" for example in examples]
    return tokenizer.fast.ids_of_lines(lines)


def _classes(
    known: sparse.csr_matrix, gold: np.ndarray, new: sparse.csr_matrix
) -> np.ndarray:
    """Predicts classes, or the presence of one label, int [N]."""
    if np.ptp(gold) == 0:  # nothing to tell apart
        return np.full(new.shape[0], gold[0])
    return LogisticRegression(max_iter=_STEPS).fit(known, gold).predict(new)
