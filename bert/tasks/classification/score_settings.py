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

_OF_LABELS = (
    "class_weights",
    "label_smoothing",
    "tune_thresholds",
    "calibrate",
    "unknown_below",
)


@dataclasses.dataclass(frozen=True)
class Scoring:
    """What is optimized, and what answers are made of."""

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

    tune_thresholds: bool = flag(
        False,
        "Find the cut of each label with the highest F1 on the file of "
        "evaluation; of two labels, that of --positive_label.",
    )
    positive_label: str | None = flag(
        None, "The label of --tune_thresholds; default: the rarer one."
    )
    calibrate: bool = flag(
        False,
        "Fit the temperature of the probabilities to the file of evaluation.",
    )
    unknown_below: float | None = flag(
        None,
        "Probability below which a text gets no label.",
        at_least=0.0,
        at_most=1.0,
    )

    @property
    def tunes(self) -> bool:
        """Whether something is fitted to the file of evaluation."""
        return self.tune_thresholds or self.calibrate

    def check(self, labels: Labels) -> None:
        """Rejects what does not fit the labels.

        Raises:
            UserError: a flag is of another kind of labels.
        """
        if labels.kind == REGRESSION:
            for name in _OF_LABELS:
                if getattr(self, name):
                    raise UserError(
                        f"--{name} with labels that are numbers",
                        fix=f"omit --{name}",
                    )

        if self.unknown_below and labels.kind == MULTI_LABEL:
            raise UserError(
                f"--unknown_below={self.unknown_below} with --multi_label",
                expected="one label for each text",
                fix="see --tune_thresholds",
            )
        if self.tune_thresholds and labels.kind == CLASSES and labels.size != 2:
            raise UserError(
                f"--tune_thresholds with {labels.size} labels",
                expected="two, or --multi_label",
                fix="see --class_weights",
            )
        if self.positive_label not in (None, *labels.names):
            raise UserError(
                f"--positive_label={self.positive_label}",
                expected=f"one of {', '.join(labels.names[:10])}",
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

    def mistakes(self, chooses: bool, do_eval: bool) -> Iterator[UserError]:
        """Yields flags without an effect, or that contradict each other.

        Args:
            chooses: whether the best weights or seed are chosen.
            do_eval: whether labelled examples are evaluated.
        """
        for name in ("tune_thresholds", "calibrate"):
            if getattr(self, name) and not do_eval:
                yield UserError(
                    f"--{name} without --do_eval", fix="pass --do_eval too"
                )
        if self.positive_label and not self.tune_thresholds:
            yield UserError(
                "--positive_label without --tune_thresholds",
                fix="pass --tune_thresholds too",
            )

        # An answer above its cut may have any probability.
        if self.tune_thresholds and self.unknown_below:
            yield UserError(
                "--tune_thresholds and --unknown_below", expected="one of them"
            )
        if self.best_metric and not chooses:
            yield UserError(
                f"--best_metric={self.best_metric} without a choice",
                fix="pass --eval_steps, the number of steps between "
                "evaluations, or --num_seeds",
            )
