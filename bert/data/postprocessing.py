"""Post-processing: converts logits to probabilities and predictions."""

import numpy as np

from bert.data.labels import CLASSES, MULTI_LABEL, PLAIN, PostProcessing


def softmax(logits: np.ndarray) -> np.ndarray:
    """Softmax over the last axis: float [..., C] -> float [..., C]."""
    # The largest power is 1, so that none overflows.
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Logarithm of the softmax: float [..., C] -> float [..., C]."""
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def probabilities(
    logits: np.ndarray, kind: str, decision: PostProcessing = PLAIN
) -> np.ndarray:
    """Converts logits to probabilities.

    Args:
        logits: float32 [N, C].
        kind: str. Kind of the labels, one of `KINDS`.
        decision: PostProcessing. Its log_weights and temperature are applied.

    Returns:
        float32 [N, C]. Softmax for CLASSES, sigmoid for MULTI_LABEL, and the
        predicted number for REGRESSION.
    """
    logits = calibrated(logits, decision)
    if kind == CLASSES:
        chances = softmax(logits)
    elif kind == MULTI_LABEL:
        with np.errstate(invalid="ignore"):  # NumPy warns of NaN
            chances = np.exp(-np.logaddexp(0.0, -logits))
    else:
        chances = logits
    return chances.astype(np.float32)


def calibrated(logits: np.ndarray, decision: PostProcessing) -> np.ndarray:
    """Returns the logits of the probabilities, float64 [N, C].

    Args:
        logits: float32 [N, C].
        decision: PostProcessing. Its log_weights and temperature are applied.
    """
    logits = np.asarray(logits, np.float64)
    if decision.log_weights:
        logits = logits - np.array(decision.log_weights)
    return logits / decision.temperature


def predictions(
    logits: np.ndarray, kind: str, decision: PostProcessing = PLAIN
) -> np.ndarray:
    """Converts logits to predictions, in the shape of the labels.

    Without thresholds, predictions agree with `probabilities`: the most
    probable class, or the labels with a probability of at least 0.5.

    Args:
        logits: float32 [N, C].
        kind: str. Kind of the labels, one of `KINDS`.
        decision: PostProcessing. Its thresholds are applied, or else its
            log_weights.

    Returns:
        CLASSES: int64 [N]; MULTI_LABEL: int64 [N, C], 0 or 1 for each label;
        REGRESSION: float32 [N].
    """
    margins = logits
    if shift := decision.thresholds or decision.log_weights:
        margins = logits - np.array(shift, np.float32)
    if kind == CLASSES:
        return margins.argmax(-1)
    if kind == MULTI_LABEL:
        return (margins >= 0).astype(np.int64)
    return logits[:, 0]


def predicted_probabilities(
    chances: np.ndarray, predicted: np.ndarray
) -> np.ndarray:
    """Returns the probability of each predicted class, float32 [N].

    With thresholds, another class may have a higher probability.

    Args:
        chances: float32 [N, C]. Probabilities of CLASSES.
        predicted: int64 [N]. Result of `predictions`.
    """
    return np.take_along_axis(chances, predicted[:, np.newaxis], -1)[:, 0]


def is_rejected(
    chances: np.ndarray, predicted: np.ndarray, decision: PostProcessing
) -> np.ndarray:
    """Returns whether each prediction is rejected, bool [N].

    It is below `unknown_below`, or its logits are not finite.

    Args:
        chances, predicted: see `predicted_probabilities`.
        decision: PostProcessing. Post-processing of the predictions.
    """
    given = predicted_probabilities(chances, predicted)
    return ~(given >= np.float32(decision.unknown_below))  # also of NaN
