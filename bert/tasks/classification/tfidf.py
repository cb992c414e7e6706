"""Linear model of the tokens of a text, a baseline of classification.

    texts -> token ids -> TF-IDF -> logistic regression, or ridge regression

It is fitted to the training examples in seconds. A network with lower scores
probably has a mistake in its data or settings.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, cross_val_predict

from bert.data.labels import MULTI_LABEL, REGRESSION
from bert.data.text.tokenizer import Tokenizer
from bert.tasks import evaluation, frozen
from bert.tasks.classification import scores
from bert.tasks.classification.files import TextExample, labels_of
from bert.tasks.evaluation import TFIDF

if TYPE_CHECKING:  # it imports this module
    from bert.tasks.classification.task import TextClassification

_STEPS = 1000
_LEAST_GAIN = 0.1  # fraction of a constant's squared error
_FOLDS = 20  # at most; with five, few texts lack a fifth of their words


def baseline(
    task: "TextClassification",
    rows: list[TextExample],
    train: list[TextExample],
) -> dict[str, float]:
    """Scores the linear model; {} if the training texts have no tokens.

    Args:
        task: the `TextClassification`, with labels and tokenizer.
        rows: the evaluated examples.
        train: the training examples.

    Returns:
        "metric/kind" -> value, see `tasks.eval_report`.
    """
    predicted = predictions(train, rows, task.labels.kind, task.tokenizer)
    if predicted is None:
        return {}
    found = scores.compute(task.metrics, labels_of(rows), predicted)
    return {f"{name}/{TFIDF}": value for name, value in found.items()}


def predictions(
    train: list[TextExample],
    rows: list[TextExample],
    kind: str,
    tokenizer: Tokenizer,
) -> NDArray | None:
    """Fits the model, and predicts texts.

    Args:
        train: the training examples.
        rows: N examples.
        kind: the kind of labels.
        tokenizer: the network's tokenizer; texts are not truncated.

    Returns:
        predictions, see `postprocessing.predictions`; None if the training
        texts have no tokens.
    """
    drawn = evaluation.drawn_to_fit(len(train))
    bags = bags_of([train[i] for i in drawn], tokenizer)
    if not any(bags):
        return None
    vectorizer = _vectorizer()
    known = vectorizer.fit_transform(bags)
    new = vectorizer.transform(bags_of(rows, tokenizer))

    gold = labels_of(train)[drawn]
    if kind == REGRESSION:
        return Ridge().fit(known, gold).predict(new)
    if kind == MULTI_LABEL:
        return np.stack([_classes(known, y, new) for y in gold.T], -1)
    return _classes(known, gold, new)


def fit_words(
    bags: list[list[int]],
    gold: NDArray,
    kind: str,
    num_outputs: int,
    vocab_size: int,
    weights: NDArray | None = None,
) -> NDArray | None:
    """Fits ridge regression of TF-IDF, if it predicts the labels.

    An encoder whose outputs say little about the labels can still learn them.

    Args:
        bags: list of lists of int. Token ids of the training texts.
        gold, kind, num_outputs, weights: see `frozen.fit`.
        vocab_size: int. V.

    Returns:
        float32 [V, C]. Weight of each token for each output, times its inverse
        document frequency; None if the model does not predict left-out texts,
        see `FrozenHead`.
    """
    if not any(bags):
        return None

    vectorizer = _vectorizer()
    known = vectorizer.fit_transform(bags)
    targets = frozen.targets_of(gold, kind, num_outputs)
    left_out = cross_val_predict(
        Ridge(),
        known,
        targets,
        cv=KFold(min(_FOLDS, len(bags)), shuffle=True, random_state=0),
        params={"sample_weight": weights},
    )
    if not frozen.is_gain(left_out, targets, weights, _LEAST_GAIN):
        return None

    model = Ridge().fit(known, targets, weights)
    found = np.zeros((vocab_size, num_outputs), np.float32)
    coefficients = model.coef_.reshape(num_outputs, -1)
    found[vectorizer.get_feature_names_out().astype(int)] = (
        coefficients * vectorizer.idf_
    ).T
    return found


def _vectorizer() -> TfidfVectorizer:
    """TF-IDF of lists of token ids."""
    return TfidfVectorizer(analyzer=list, sublinear_tf=True)


def bags_of(rows: list[TextExample], tokenizer: Tokenizer) -> list[list[int]]:
    """The token ids of both texts of each row; texts are not truncated."""
    lines = [f"{row.text} {row.text_b}" for row in rows]
    return tokenizer.fast.ids_of_lines(lines)


def _classes(
    known: sparse.csr_matrix, gold: NDArray, new: sparse.csr_matrix
) -> NDArray:
    """Predicts classes, or the presence of one label, int [N]."""
    if np.ptp(gold) == 0:  # only one class
        return np.full(new.shape[0], gold[0])
    return LogisticRegression(max_iter=_STEPS).fit(known, gold).predict(new)
