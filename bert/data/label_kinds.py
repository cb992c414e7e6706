"""Labels of texts: their kinds, and predictions from logits."""

import dataclasses

import numpy as np

CLASSES, MULTI_LABEL, REGRESSION = "classes", "multi_label", "regression"


@dataclasses.dataclass(frozen=True)
class Labels:
    """The valid labels of a task.

    Attributes:
        kind: CLASSES, one of the names; MULTI_LABEL, any number of them;
            REGRESSION, a number.
        names: names of the classes, in the order of their ids.
        aliases: pairs of another spelling in the files and its name.
        separator: for MULTI_LABEL, the separator of names in a field.
    """

    kind: str = CLASSES
    names: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    separator: str = ","

    @property
    def size(self) -> int:
        """C, the number of outputs of the network."""
        return 1 if self.kind == REGRESSION else len(self.names)


def probabilities(logits: np.ndarray, kind: str) -> np.ndarray:
    """Converts logits to probabilities.

    Args:
        logits: float32 [N, C].
        kind: the kind of labels.

    Returns:
        float32 [N, C]: softmax for CLASSES, sigmoid for MULTI_LABEL, and the
        number itself for REGRESSION.
    """
    logits = np.asarray(logits, np.float64)
    if kind == CLASSES:
        # The largest power is 1, so that none overflows.
        shifted = np.exp(logits - logits.max(-1, keepdims=True))
        chances = shifted / shifted.sum(-1, keepdims=True)
    elif kind == MULTI_LABEL:
        chances = np.exp(-np.logaddexp(0.0, -logits))
    else:
        chances = logits
    return chances.astype(np.float32)


def answers(logits: np.ndarray, kind: str) -> np.ndarray:
    """Converts logits to predictions, in the shape of the labels.

    Args:
        logits: float32 [N, C].
        kind: the kind of labels.

    Returns:
        CLASSES: int64 [N]; MULTI_LABEL: int64 [N, C], 1 where the probability
        is at least one half; REGRESSION: float32 [N].
    """
    if kind == CLASSES:
        return logits.argmax(-1)
    if kind == MULTI_LABEL:
        return (logits >= 0).astype(np.int64)
    return logits[:, 0]
