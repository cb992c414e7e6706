"""Flags of the loss, the selection and the post-processing of a classifier."""

import dataclasses

from bert.common.errors import UserError
from bert.common.flags import RARE, BaseSettings, flag
from bert.common.rules import excludes, needs
from bert.data.labels import CLASSES, MULTI_LABEL, REGRESSION, Labels
from bert.tasks.metrics import F1, selecting

_OF_LABELS = (
    "class_weights",
    "label_smoothing",
    "tune_thresholds",
    "calibrate",
    "unknown_below",
)


@dataclasses.dataclass(frozen=True)
class Scoring(BaseSettings):
    """Loss, checkpoint selection, and post-processing of the logits."""

    RULES = [
        needs("tune_thresholds", "do_eval"),
        needs("calibrate", "do_eval"),
        needs("positive_label", "tune_thresholds"),
        excludes("tune_thresholds", "unknown_below"),
    ]
    topic = RARE

    class_weights: tuple[str, ...] | None = flag(
        None,
        "Class weights in the loss: balanced, or name=weight,... With "
        "--multi_label: weight of the positive class.",
        resume=True,
    )
    label_smoothing: float = flag(
        0.0,
        "Label smoothing: fraction of the target probability that is spread "
        "over all labels.",
        at_least=0.0,
        at_most=0.5,
        resume=True,
    )
    metric_for_best_model: str | None = flag(
        None,
        "Metric that selects the best checkpoint and run; default: the first "
        "metric of the task.",
    )

    tune_thresholds: bool = flag(
        False,
        "Fit decision thresholds for the highest F1 on the evaluation file: "
        "for each label, or with two labels for --positive_label.",
    )
    positive_label: str | None = flag(
        None, "Positive class for --tune_thresholds; default: the rarer one."
    )
    calibrate: bool = flag(
        False,
        "Calibrate probabilities: fit a temperature on the evaluation file.",
    )
    unknown_below: float | None = flag(
        None,
        "Minimum probability; a less probable prediction is rejected, and the "
        "text gets no label.",
        at_least=0.0,
        at_most=1.0,
    )

    def check_flags_for(self, labels: Labels) -> None:
        """Checks the flags against the labels.

        Args:
            labels: the labels of the task.

        Raises:
            UserError: a flag does not apply to these labels.
        """
        if labels.kind == REGRESSION:
            for name in _OF_LABELS:
                if getattr(self, name):
                    raise UserError(
                        f"--{name} with regression",
                        expected="classes",
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

        # F1 is defined for the second of two labels.
        names = selecting(labels.kind)
        if labels.kind == CLASSES and labels.size == 2:
            names = (*names, F1)
        if self.metric_for_best_model not in (None, *names):
            raise UserError(
                f"--metric_for_best_model={self.metric_for_best_model}",
                expected=f"one of {', '.join(names)}",
            )
