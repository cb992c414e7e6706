"""Arguments of the classes, checked like flags of scripts; and predictions."""

from collections.abc import Mapping

import numpy as np

from bert.common import flags
from bert.common.errors import UserError
from bert.data import bucketing
from bert.inference.predictor import json_values
from bert.training.settings import Training


def check_numbers(settings_class: type, **given: object) -> None:
    """Checks numbers as the flags of the same names.

    Args:
        settings_class: type. Class that has the flags.
        **given: Arguments of a class; None is valid.

    Raises:
        UserError: An argument is not a number, or out of range.
    """
    for name, value in given.items():
        flags.check_argument(settings_class, name, value)


def check_count(name: str, value: object, least: int = 1) -> None:
    """Checks an integer that is not a flag.

    Args:
        name: str. Name of the argument.
        value: The argument.
        least: int. Smallest valid value. Default: 1.

    Raises:
        UserError: The value is not an integer, or too small.
    """
    if (
        not isinstance(value, int | np.integer)
        or isinstance(value, bool)
        or value < least
    ):
        raise UserError(
            f"{name}={value!r:.60}", expected=f"an integer of {least} or more"
        )


def check_training(epochs: object, learning_rate: object) -> None:
    """Checks the numbers of epochs and the learning rate of `fit`."""
    check_count("epochs", epochs, 0)
    check_numbers(Training, learning_rate=learning_rate)


def check_dataset(**given: object) -> None:
    """Rejects arguments of `fit` that need lists, not a dataset.

    Args:
        **given: The arguments; those that are false are not given.

    Raises:
        UserError: One is given.
    """
    for name, value in given.items():
        if value:
            raise UserError(
                f"{name} is given, but x is a tf.data.Dataset",
                fix="pass validation_data, or lists of texts and labels",
            )


def check_unweighted(**given: object) -> None:
    """Rejects weights of classes or of examples.

    Args:
        **given: Arguments of `keras.Model.fit`.

    Raises:
        UserError: A weight is given.
    """
    for name in ("class_weight", "sample_weight"):
        if given.get(name) is not None:
            raise UserError(
                f"{name} is given",
                expected="no weights: each word or answer counts once",
            )


def check_not_empty(num_texts: int, num_examples: int) -> None:
    """Rejects texts that nothing can be learned from.

    Args:
        num_texts: int. Number of texts.
        num_examples: int. Number of their training examples.

    Raises:
        UserError: A number is 0.
    """
    if not num_texts:
        raise UserError("no texts", expected="one or more")
    if not num_examples:
        raise UserError(
            f"no words or answers in {num_texts:,} texts",
            expected="a word, or an answer that is at its answer_start",
        )


def check_prediction(batch_size: int, others: dict) -> None:
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


def columns_of(
    predictions: list[dict], types: Mapping[str, type | None]
) -> dict:
    """Converts predictions to columns of all their values.

    Args:
        predictions: list of dict. JSON values of each example.
        types: dict. Name -> dtype of its array. Values with None, and values
            that are not named, become lists.

    Returns:
        dict. Name -> array or list.
    """
    names = {**types, **dict.fromkeys(predictions[0] if predictions else ())}
    columns = {name: [x[name] for x in predictions] for name in names}
    arrays = {
        name: np.array(columns[name], kind)
        for name, kind in types.items()
        if kind is not None
    }
    return columns | arrays
