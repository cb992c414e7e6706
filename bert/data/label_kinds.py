"""Labels of texts: their kinds, and predictions from logits."""

import dataclasses
from typing import Self

import numpy as np

KINDS = CLASSES, MULTI_LABEL, REGRESSION = (
    "classes",
    "multi_label",
    "regression",
)


@dataclasses.dataclass(frozen=True)
class Decision:
    """Post-processing of the logits, to predictions and probabilities.

    Attributes:
        cuts: thresholds of the logits, C of them or none. They decide the
            prediction, but do not change the probabilities.
        log_weights: logarithms of the weights of the labels in training,
            which shift the logits by them. They are subtracted before the
            probabilities, and before a prediction without cuts.
        temperature: divides the logits before the probabilities.
        unknown_below: a class with a lower probability is not predicted.
    """

    cuts: tuple[float, ...] = ()
    log_weights: tuple[float, ...] = ()
    temperature: float = 1.0
    unknown_below: float = 0.0

    @classmethod
    def of_task(cls, task: dict) -> Self:
        """The one of a `task.json`."""
        values = task.get("decision", {})
        lists = {k: tuple(x) for k, x in values.items() if isinstance(x, list)}
        return cls(**(values | lists))

    def described(self) -> dict:
        """Its entry in a `task.json`; {} if it changes nothing."""
        if self == PLAIN:
            return {}
        values = dataclasses.asdict(self)
        lists = {k: [*x] for k, x in values.items() if isinstance(x, tuple)}
        return {"decision": values | lists}


PLAIN = Decision()


@dataclasses.dataclass(frozen=True)
class Labels:
    """The valid labels of a task.

    Attributes:
        kind: CLASSES, one of the names; MULTI_LABEL, any number of them;
            REGRESSION, a number.
        names: names of the classes, in the order of their ids.
        aliases: pairs of another spelling in the files and its name.
        separator: for MULTI_LABEL, the separator of names in a field.
        decision: post-processing; ignored when labels are compared.
    """

    kind: str = CLASSES
    names: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    separator: str = ","
    decision: Decision = dataclasses.field(default=PLAIN, compare=False)

    @classmethod
    def of_task(cls, task: dict) -> Self:
        """The labels of a `task.json`."""
        names = tuple(task["labels"])
        return cls(task["kind"], names, decision=Decision.of_task(task))

    @property
    def size(self) -> int:
        """C, the number of outputs of the network."""
        return 1 if self.kind == REGRESSION else len(self.names)


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
    logits: np.ndarray, kind: str, decision: Decision = PLAIN
) -> np.ndarray:
    """Converts logits to probabilities.

    Args:
        logits: float32 [N, C].
        kind: the kind of labels.
        decision: may have log_weights and a temperature.

    Returns:
        float32 [N, C]: softmax for CLASSES, sigmoid for MULTI_LABEL, and the
        number itself for REGRESSION.
    """
    logits = np.asarray(logits, np.float64)
    if decision.log_weights:
        logits = logits - np.array(decision.log_weights)
    logits = logits / decision.temperature
    if kind == CLASSES:
        chances = softmax(logits)
    elif kind == MULTI_LABEL:
        chances = np.exp(-np.logaddexp(0.0, -logits))
    else:
        chances = logits
    return chances.astype(np.float32)


def answers(
    logits: np.ndarray, kind: str, decision: Decision = PLAIN
) -> np.ndarray:
    """Converts logits to predictions, in the shape of the labels.

    Without cuts, a prediction agrees with `probabilities`: it is the most
    probable class, or the labels with a probability of at least one half.

    Args:
        logits: float32 [N, C].
        kind: the kind of labels.
        decision: may have cuts or log_weights.

    Returns:
        CLASSES: int64 [N]; MULTI_LABEL: int64 [N, C], 0 or 1 for each label;
        REGRESSION: float32 [N].
    """
    margins = logits
    if shift := decision.cuts or decision.log_weights:
        margins = logits - np.array(shift, np.float32)
    if kind == CLASSES:
        return margins.argmax(-1)
    if kind == MULTI_LABEL:
        return (margins >= 0).astype(np.int64)
    return logits[:, 0]


def of_predicted(chances: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """The probability of each predicted class, float32 [N].

    With cuts, it may be lower than the probability of another class.

    Args:
        chances: probabilities of CLASSES, float32 [N, C].
        predicted: int64 [N], see `answers`.
    """
    return np.take_along_axis(chances, predicted[:, np.newaxis], -1)[:, 0]


def unknown(logits: np.ndarray, decision: Decision) -> np.ndarray:
    """Whether predictions are too improbable to be given, bool [N].

    Args:
        logits: float32 [N, C], of CLASSES.
        decision: the post-processing of the predictions.
    """
    chances = probabilities(logits, CLASSES, decision)
    given = of_predicted(chances, answers(logits, CLASSES, decision))
    return given < np.float32(decision.unknown_below)
