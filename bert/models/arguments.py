"""Checks of arguments of the classes, most of them as the flags of scripts."""

from typing import Any

from bert.common import flags
from bert.common.errors import UserError
from bert.data import bucketing
from bert.inference.predictor import json_values
from bert.tasks.classification.settings import Distillation
from bert.training.settings import Training

_FLAGS = {  # argument -> class that has the flag of this name
    "distill_temperature": Distillation,
    "distill_weight": Distillation,
    "learning_rate": Training,
}


def check_numbers(**given: Any) -> None:
    """Checks numbers as the flags of the same names.

    Args:
        **given: Arguments of a class, keys of `_FLAGS`; None is valid.

    Raises:
        UserError: An argument is not a number, or out of range.
    """
    for name, value in given.items():
        flags.check_argument(_FLAGS[name], name, value)


def check_prediction(batch_size: Any, others: dict) -> None:
    """Rejects invalid batch sizes, and other arguments of `keras.Model`.

    Args:
        batch_size: int. Number of examples of a batch.
        others: dict. Other arguments of `predict` or `evaluate`.

    Raises:
        UserError: An argument is invalid.
    """
    bucketing.check_size(batch_size)
    if others:
        raise UserError(
            f"the argument {next(iter(others))} is given",
            expected="batch_size or verbose",
        )


def check_finite(predictions: list[dict], first: int = 0) -> list[dict]:
    """Rejects predictions with a number that is not finite.

    Args:
        predictions: list of dict. JSON values of each example.
        first: int. Index of the first example, for the message. Default: 0.

    Returns:
        The same predictions.

    Raises:
        UserError: A number is not finite.
    """
    for i, prediction in enumerate(predictions, first):
        try:
            json_values(prediction)
        except ValueError:
            raise UserError(
                f"the outputs for x[{i}] are not finite",
                fix="check the text and the training of the model",
            ) from None
    return predictions
