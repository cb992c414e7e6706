"""Labels of texts, and post-processing of logits to predictions."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

KINDS = CLASSES, MULTI_LABEL, REGRESSION = (
    "classes",
    "multi_label",
    "regression",
)
_FIELDS = {"cuts": "thresholds"}  # keys of JSON that have another name


@dataclasses.dataclass(frozen=True)
class PostProcessing:
    """Post-processing of logits to predictions and probabilities.

    Attributes:
        thresholds: tuple of C floats, or (). Thresholds of the logits. They
            change the predictions, but not the probabilities.
        log_weights: tuple of C floats, or (). Logarithms of the class weights
            in training, which shifted the logits. They are subtracted before
            computing probabilities, and predictions without thresholds.
        temperature: float. Divides the logits before the probabilities are
            computed. Default: 1.
        unknown_below: float. Minimum probability of a predicted class; below
            it the prediction is "unknown". Default: 0.
    """

    thresholds: tuple[float, ...] = ()
    log_weights: tuple[float, ...] = ()
    temperature: float = 1.0
    unknown_below: float = 0.0

    @classmethod
    def of_task(cls, task: dict) -> Self:
        """Reads the post-processing from the content of a `task.json`."""
        values: dict[str, Any] = {
            _FIELDS.get(key, key): tuple(x) if isinstance(x, list) else x
            for key, x in task.get("decision", {}).items()
        }
        return cls(**values)

    def described(self) -> dict:
        """Returns the entry of `task.json`; {} for the default."""
        if self == PLAIN:
            return {}
        keys = {field: key for key, field in _FIELDS.items()}
        values = {
            keys.get(field, field): [*x] if isinstance(x, tuple) else x
            for field, x in dataclasses.asdict(self).items()
        }
        return {"decision": values}


PLAIN = PostProcessing()


@dataclasses.dataclass(frozen=True)
class Labels:
    """The valid labels of a task.

    Attributes:
        kind: str. CLASSES: one of the names; MULTI_LABEL: any number of them;
            REGRESSION: a number.
        names: tuple of str. Names of the classes, in the order of their ids.
        aliases: tuple of (str, str). Pairs of an alternative spelling in the
            files and the name.
        separator: str. Separator of names in a field, for MULTI_LABEL.
        decision: PostProcessing. Post-processing; ignored in comparisons.
    """

    kind: str = CLASSES
    names: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    separator: str = ","
    decision: PostProcessing = dataclasses.field(default=PLAIN, compare=False)

    @classmethod
    def of_task(cls, task: dict) -> Self:
        """Reads the labels from the content of a `task.json`."""
        names = tuple(task["labels"])
        return cls(task["kind"], names, decision=PostProcessing.of_task(task))

    @property
    def size(self) -> int:
        """C, the number of outputs of the network."""
        return 1 if self.kind == REGRESSION else len(self.names)


def shown(names: Sequence[str]) -> str:
    """Formats the names of labels for a message."""
    more = f", ... ({len(names)})" if len(names) > 5 else ""
    return f"{', '.join(names[:5])}{more}" if names else "(numbers)"


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


def is_rejected(logits: np.ndarray, decision: PostProcessing) -> np.ndarray:
    """Returns whether each prediction is below `unknown_below`, bool [N].

    Args:
        logits: float32 [N, C]. Logits of CLASSES.
        decision: PostProcessing. Post-processing of the predictions.
    """
    chances = probabilities(logits, CLASSES, decision)
    given = predicted_probabilities(
        chances, predictions(logits, CLASSES, decision)
    )
    return given < np.float32(decision.unknown_below)
