"""A TF-IDF baseline: a linear model of the tokens of a text.

    texts -> token ids -> TF-IDF -> logistic regression, or ridge regression

It is fitted to the training examples in seconds. A network with lower scores
probably has a mistake in its data or settings.
"""

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

from bert.data.label_kinds import MULTI_LABEL, REGRESSION
from bert.data.text.tokenizer import Tokenizer
from bert.tasks.classification.examples import TextExample
from bert.tasks.classification.inputs import Part

_MOST = 10_000  # training examples; more take minutes
_STEPS = 1000


def answers(
    train: Part, part: Part, kind: str, tokenizer: Tokenizer
) -> np.ndarray | None:
    """Fits the baseline, and predicts the texts of a file.

    Args:
        train: the training examples.
        part: the N examples of the file.
        kind: the kind of labels.
        tokenizer: the network's tokenizer; texts are not truncated.

    Returns:
        predictions, see `label_kinds.answers`; None if the training texts
        have no tokens.
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
    """The token ids of both texts of each example."""
    lines = [f"{example.text} {example.text_b}" for example in examples]
    return tokenizer.fast.ids_of_lines(lines)


def _classes(
    known: sparse.csr_matrix, gold: np.ndarray, new: sparse.csr_matrix
) -> np.ndarray:
    """Predicts classes, or the presence of one label, int [N]."""
    if np.ptp(gold) == 0:  # only one class
        return np.full(new.shape[0], gold[0])
    return LogisticRegression(max_iter=_STEPS).fit(known, gold).predict(new)
