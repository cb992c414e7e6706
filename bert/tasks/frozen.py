"""Linear model of the frozen outputs of an encoder, the start of the head.

    pooled outputs of the training texts -> ridge regression -> W, b

A head with random weights disturbs the encoder in the first steps of
fine-tuning (Kumar et al. 2022, arXiv:2202.10054). This one predicts from the
encoder as it is.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import fft, optimize, special
from sklearn.linear_model import LogisticRegression, RidgeCV

from bert.data.labels import MULTI_LABEL, REGRESSION
from bert.tasks.recipe import FrozenHead

# Dropout of the features at rate p is a penalty of p / (1 - p) per text (Wager
# et al. 2013, arXiv:1307.1493); larger ones are tried, too.
_PENALTIES = 0.1 / 0.9 * np.logspace(0, 3.5, 9)
_MAX_SCALE = 30.0
_START = 0.3  # factor of the logits
_LEAST_GAIN = 0.04  # fraction of a constant's squared error


def fit(
    features: NDArray,
    gold: NDArray,
    kind: str,
    num_outputs: int,
    weights: NDArray | None = None,
) -> FrozenHead:
    """Fits the weights of a head to frozen features.

    Ridge regression of the labels. Its penalty has the smallest error of
    predictions for left-out texts, but is not below the penalty of the dropout
    before the head. For classes and several labels, the outputs are scaled so
    that these predictions have the smallest cross entropy. The weights are
    near 0 where the features predict nothing.

    Args:
        features: float32 [N, H]. Pooled outputs of the training texts.
        gold: int [N] class ids, int [N, C] zeros and ones, or float [N].
        kind: str. Kind of the labels.
        num_outputs: int. C.
        weights: float [N] or None. Weights of the texts. Default: None.
    """
    features = features.astype(np.float64)
    mean, size = features.mean(0), np.sqrt(np.square(features).mean())
    targets = targets_of(gold, kind, num_outputs)
    alphas = len(gold) * _PENALTIES
    model = RidgeCV(
        alphas, scoring="neg_mean_squared_error", store_cv_results=True
    )
    model.fit((features - mean) / size, targets, weights)
    chosen = np.flatnonzero(alphas == model.alpha_)[0]
    # [N, C]: each text is predicted by the others.
    left_out = model.cv_results_[..., chosen].reshape(targets.shape)
    scale, shift = _calibration(left_out, gold, kind)

    coefficients = model.coef_.reshape(num_outputs, -1) / size
    bias = model.intercept_ - coefficients @ mean
    head = np.column_stack([coefficients, bias]) * scale[:, None]
    head[:, -1] += shift
    start = _START * head
    if kind == REGRESSION:  # logits shrink to 0, numbers to their mean
        start[:, -1] += (1 - _START) * targets.mean(0)
    predicts = kind == REGRESSION or is_gain(
        left_out, targets, weights, _LEAST_GAIN
    )
    return FrozenHead(
        head.astype(np.float32), start.astype(np.float32), predicts, kind
    )


def word_embeddings(weights: NDArray, table: NDArray) -> NDArray:
    """Turns a linear model of the words into values for the word embeddings.

    Each class is a direction, orthogonal to the others: a row of the discrete
    cosine transform, without the constant one, which layer normalization
    removes. The values are as large as the word embeddings.

    Args:
        weights: float32 [W, C]. Weight of each token for each class; 0 for
            tokens that are not in the training texts.
        table: float32 [V, H]. The word embeddings; a vocabulary can have fewer
            tokens.

    Returns:
        float32 [V, H]. Values to add; 0 where the weights are 0.
    """
    size, num_outputs = table.shape[1], weights.shape[1]
    cosines = fft.dct(np.eye(size), norm="ortho", axis=0)
    values = weights @ cosines[1 + np.arange(num_outputs) % (size - 1)]
    largest = np.square(values[weights.any(-1)]).mean()
    added = np.zeros_like(table)
    added[: len(values)] = np.sqrt(np.square(table).mean() / largest) * values
    return added


def targets_of(gold: NDArray, kind: str, num_outputs: int) -> NDArray:
    """Values that a regression predicts, float64 [N, C]."""
    if kind not in (MULTI_LABEL, REGRESSION):
        gold = np.eye(num_outputs)[gold]
    return gold.reshape(len(gold), num_outputs).astype(np.float64)


def is_gain(
    left_out: NDArray,
    targets: NDArray,
    weights: NDArray | None,
    least_gain: float,
) -> bool:
    """Whether predictions for left-out texts are better than a constant.

    Args:
        left_out: float [N, C]. The predictions.
        targets: float64 [N, C]. Result of `targets_of`.
        weights: float [N] or None. Weights of the texts.
        least_gain: float. Fraction of the constant's squared error by which
            the error is smaller, at least; also at least a standard error.
    """
    weights = np.ones(len(targets)) if weights is None else weights
    sums = weights @ targets - weights[:, None] * targets
    means = sums / (weights.sum() - weights)[:, None]
    constant = weights * np.square(means - targets).sum(-1)
    gains = constant - weights * np.square(left_out - targets).sum(-1)
    error = gains.std() / np.sqrt(len(gains))
    return bool(gains.mean() > max(error, least_gain * constant.mean()))


def _calibration(
    predicted: NDArray, gold: NDArray, kind: str
) -> tuple[NDArray, NDArray]:
    """Factors and summands, [C], that turn regressions into logits."""
    size = predicted.shape[1]
    scale, shift = np.ones(size), np.zeros(size)
    if kind == REGRESSION:
        return scale, shift
    if kind == MULTI_LABEL:
        for i, column in enumerate(gold.T):
            if np.ptp(column):  # both values occur
                one = LogisticRegression(C=100.0)
                one.fit(predicted[:, i : i + 1], column)
                scale[i], shift[i] = (
                    max(0.0, one.coef_[0, 0]),
                    one.intercept_[0],
                )
            else:
                shift[i] = 4.0 if column[0] else -4.0
        return scale, shift

    def loss(factor: float) -> float:
        logs = special.log_softmax(factor * predicted, -1)
        return -logs[np.arange(len(gold)), gold].mean()

    found = optimize.minimize_scalar(
        loss, bounds=(0.0, _MAX_SCALE), method="bounded"
    )
    return scale * found.x, shift
