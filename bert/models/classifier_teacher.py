"""Distillation of a `TextClassifier`: a teacher, and its part of the loss."""

import os

from bert.common.errors import UserError
from bert.data import feature_names
from bert.data.records.examples import Examples
from bert.inference import teacher as teachers
from bert.inference.predictor import Predictor
from bert.models import arguments
from bert.models.base import TextModel
from bert.tasks.classification.settings import Distillation
from bert.tasks.classification.task import TextClassification


def check(
    teacher: object, distill_weight: object, distill_temperature: object
) -> None:
    """Checks the teacher of `fit`, and the numbers of its loss.

    Args:
        teacher: The teacher, or None.
        distill_weight, distill_temperature: See the flags of these names.

    Raises:
        UserError: The teacher is not a model that takes text or a path, or a
            number is out of range, or is given without a teacher.
    """
    given = {
        "distill_weight": distill_weight,
        "distill_temperature": distill_temperature,
    }
    arguments.check_numbers(Distillation, **given)
    for name, value in given.items():
        if teacher is None and value != getattr(Distillation, name):
            raise UserError(
                f"{name}={value} without teacher", fix="pass teacher too"
            )
    if not isinstance(teacher, str | os.PathLike | TextModel | None):
        raise UserError(
            f"teacher is a {type(teacher).__name__}",
            expected="a TextClassifier, or a path",
        )


def with_outputs(
    teacher: str | os.PathLike | TextModel,
    student: TextClassification,
    rows: list,
    encoded: Examples,
    weight: float,
) -> Examples:
    """Returns encoded examples with the outputs of a teacher.

    Args:
        teacher: str, path or TextClassifier.
        student: TextClassification. Task of the student.
        rows: list. The examples, with labels or without.
        encoded: Examples. The encoded examples.
        weight: float. Weight of the teacher beside a label.

    Raises:
        UserError: the teacher has another task or other labels.
    """
    path = "teacher"
    if isinstance(teacher, str | os.PathLike):
        path = os.fspath(teacher)
        predictor = Predictor.open(path)
    else:
        predictor = teacher._predictor()
    teachers.check(predictor.task, student, path)
    outputs = teachers.targets(predictor, student, rows)
    return teachers.with_outputs(encoded, student, rows, outputs, weight)


def divided(x: dict | None, weights) -> tuple:
    """Divides the weights of texts between their labels and the teacher.

    Args:
        x: dict or None. The inputs of a batch.
        weights: float32 [B] or None. Weights of the texts.

    Returns:
        Weights in the loss of the labels, and in the loss of the teacher,
        float32 [B]; without a teacher the latter is None.
    """
    if x is None or feature_names.TEACHER_WEIGHTS not in x:
        return weights, None
    share = x[feature_names.TEACHER_WEIGHTS]
    weights = 1.0 if weights is None else weights
    return weights * (1.0 - share), weights * share
