"""Flags of run_classifier.py for rare labels."""

import dataclasses
from collections.abc import Iterator

from bert.common.errors import UserError
from bert.common.flags import RARE, flag
from bert.data.label_kinds import CLASSES, MULTI_LABEL, REGRESSION, Labels
from bert.tasks.classification.tasks import (
    ACCURACY,
    F1,
    MACRO_F1,
    MAE,
    MATTHEWS,
    MICRO_F1,
    PEARSON,
    SPEARMAN,
)

LOSS = "loss"
BALANCED = "balanced"
_SELECTING = {  # kind of labels -> metrics that can choose the best weights
    CLASSES: (ACCURACY, MACRO_F1, MATTHEWS, LOSS),
    MULTI_LABEL: (MICRO_F1, MACRO_F1, ACCURACY, LOSS),
    REGRESSION: (PEARSON, SPEARMAN, MAE, LOSS),
}


@dataclasses.dataclass(frozen=True)
class Scoring:
    """What is optimized."""

    topic = RARE

    class_weights: tuple[str, ...] | None = flag(
        None,
        "Weights of the labels in the loss: balanced, or name=weight,...; of "
        "several labels, those of the texts that have the label.",
        resume=True,
    )
    label_smoothing: float = flag(
        0.0,
        "Share of the probability that training spreads over all labels.",
        at_least=0.0,
        at_most=0.5,
        resume=True,
    )
    best_metric: str | None = flag(
        None,
        "Metric that chooses the best weights and seed; default: the first "
        "of the task.",
    )

    def check(self, labels: Labels) -> None:
        """Rejects what does not fit the labels.

        Raises:
            UserError: a flag is of another kind of labels.
        """
        if labels.kind == REGRESSION:
            for name in ("class_weights", "label_smoothing"):
                if getattr(self, name):
                    raise UserError(
                        f"--{name} with labels that are numbers",
                        fix=f"omit --{name}",
                    )

        # F1 alone is that of the second of two labels.
        names = _SELECTING[labels.kind]
        if labels.kind == CLASSES and labels.size == 2:
            names = (*names, F1)
        if self.best_metric not in (None, *names):
            raise UserError(
                f"--best_metric={self.best_metric}",
                expected=f"one of {', '.join(names)}",
            )

    def mistakes(self, chooses: bool) -> Iterator[UserError]:
        """Yields flags without an effect.

        Args:
            chooses: whether the best weights or seed are chosen.
        """
        if self.best_metric and not chooses:
            yield UserError(
                f"--best_metric={self.best_metric} without a choice",
                fix="pass --eval_steps, the number of steps between "
                "evaluations, or --num_seeds",
            )
