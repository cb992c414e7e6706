"""Labels of a text classifier: resolves names, converts labels to ids."""

import collections
import numbers
from collections.abc import Callable, Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from bert.common.errors import UserError
from bert.data.labels import (
    CLASSES,
    KINDS,
    MULTI_LABEL,
    REGRESSION,
    Labels,
)
from bert.data.text.array_inputs import elements, finite, lists
from bert.models import loading

_NUMBER = (numbers.Number, np.bool_)
_LIKE_BITS = ({"0"}, {"0", "1"}, {"False"}, {"False", "True"})  # names


def of_encoder(encoder, kinds: Collection = KINDS) -> Labels | None:
    """Returns the labels that an encoder was fine-tuned with, or None.

    Args:
        encoder: Encoder. The encoder.
        kinds: collection of str or None. Kinds of labels of the task.
            Default: kinds of a text's labels.
    """
    task = loading.task_of(encoder)
    return Labels.of_task(task) if task and task["kind"] in kinds else None


def chosen(
    given, trained: Labels | None, multi_label: bool, regression: bool
) -> Labels:
    """Resolves the user's labels and the labels of a fine-tuned model.

    Args:
        given: list of str, int or bool, or None. The user's labels, in order.
            None: the labels of the model.
        trained: Labels or None. The labels of the model.
        multi_label: bool. Whether a text may have any number of labels.
        regression: bool. Whether the labels are numbers.

    Raises:
        UserError: Labels are missing or occur twice, or are the labels of the
            model in another order.
    """
    if regression:
        return Labels(REGRESSION)
    if given is None:
        if trained is None:
            raise UserError("no labels", fix="pass their names")
        if not multi_label:
            return trained
        given = trained.names

    kind = MULTI_LABEL if multi_label else CLASSES
    labels = Labels(kind, names_of(given, 2 - multi_label))
    check_order(labels, trained)
    return trained if trained and labels == trained else labels


def names_of(given, fewest: int = 2) -> tuple[str, ...]:
    """Converts labels to names.

    Args:
        given: list of str, int, float or bool. The labels.
        fewest: int. Minimum number of labels. Default: 2.

    Raises:
        UserError: A name is missing, blank or occurs twice, the number of
            labels is too small, or they have no order.
    """
    given = elements(given, "labels")
    names = tuple(map(name_of, given))
    is_whole = all(  # no NaN, no blank
        isinstance(x, (str, *_NUMBER)) and x == x and str(x).strip()
        for x in given
    )
    if not is_whole or len(set(names)) < max(len(names), fewest):
        least = "one" if fewest == 1 else "two"
        raise UserError(
            f"labels={given!r:.60}", expected=f"{least} or more names, once"
        )
    return names


def check_order(labels: Labels, trained: Labels | None) -> None:
    """Rejects the labels of a model in another order.

    Args:
        labels: Labels. The user's labels.
        trained: Labels or None. The labels of the model.

    Raises:
        UserError: The order differs.
    """
    if trained and labels.kind == trained.kind:
        labels.check_same(
            trained,
            may_rename=True,
            fix="omit labels to use the labels of the model",
        )


def ids(values, labels: Labels) -> NDArray:
    """Encodes labels as training targets.

    Args:
        values: list, array or column. N class names, or class indices if no
            class name is numeric. For MULTI_LABEL, lists of these, or rows of
            0 and 1, which must be an array or a table if the class names are
            0 and 1. For REGRESSION, numbers.
        labels: Labels. Kind and names of the labels.

    Returns:
        the class ids, int32 [N], for CLASSES; 0 or 1, float32 [N, C], for
        MULTI_LABEL; float32 [N] for REGRESSION.

    Raises:
        UserError: A label is unknown.
    """
    if labels.kind == REGRESSION:
        return finite(values, "labels")

    names = labels.names
    number = numbering(names)
    if labels.kind == CLASSES:
        fix = "pass a name or index for each text, not one-hot rows"
        values = elements(values, "labels", fix)
        found = [number(x, f"labels[{i}]: ") for i, x in enumerate(values)]
        return np.array(found, np.int32)

    # [0, 1] may be two class names; then only a table has indicators.
    is_table = hasattr(values, "__array__") and np.ndim(values) == 2
    has_bits = is_table or set(names) not in _LIKE_BITS
    values = lists(values, "labels", names)
    rows = np.zeros((len(values), len(names)), np.float32)
    for i, (row, entry) in enumerate(zip(rows, values, strict=True)):
        if has_bits and len(entry) == len(names) and set(entry) <= {0, 1}:
            row[:] = entry
        else:
            row[[number(label, f"labels[{i}]: ") for label in entry]] = 1.0
    return rows


def class_weights(weights, labels: Labels) -> dict[int, float] | None:
    """Converts the weights of classes for Keras.

    Args:
        weights: dict or None. Name or index of a class -> weight.
        labels: Labels. Kind and names of the labels.

    Returns:
        dict: index of each class -> weight, 1 if it is not given; or None.

    Raises:
        UserError: A class is unknown, a weight is not finite, or the labels
            are not classes.
    """
    if not weights:
        return None
    if labels.kind != CLASSES:
        raise UserError(
            f"class_weight is given for labels of kind {labels.kind}",
            fix="pass sample_weight",
        )
    if not isinstance(weights, Mapping):
        raise UserError(
            f"class_weight={weights!r:.60}",
            expected="a dict from class name to weight, such as "
            "{" + f"{labels.names[0]!r}: 2.0" + "}",
        )
    number = numbering(labels.names)
    found = [number(name, "class_weight: ") for name in weights]
    values = finite(weights.values(), "class_weight")

    # Keras fails at class indices above the largest one in the dict.
    usual = dict.fromkeys(range(labels.size), 1.0)
    return usual | dict(zip(found, values.tolist(), strict=True))


def numbering(names: tuple[str, ...]) -> Callable[[object, str], int]:
    """Returns a function from a label or a class index to the class index.

    The function raises a UserError for an unknown label, and for a number that
    fits several names, as 1.0 fits "1" and "01". Its second argument,
    such as "tags[7]: ", is the start of the message.
    """
    # 2 is either a class name or a class index.
    indices = {name: i for i, name in enumerate(names)}
    values = collections.Counter(map(_value, names))
    del values[None]
    positions = range(0 if values else len(names))

    def number(label, where: str) -> int:
        name = name_of(label)
        is_number = isinstance(label, _NUMBER)  # excludes NA of pandas
        if is_number and values[_value(name)] > 1:
            raise UserError(
                f"{where}the number {label!r:.60} fits several classes",
                expected=f"one of {', '.join(names)}, as a string",
            )
        if name in indices:
            return indices[name]
        if not is_number or label not in positions:
            raise UserError(
                f"{where}the label {label!r:.60}",
                expected=f"one of {', '.join(names)}",
            )
        return int(label)

    return number


def name_of(label) -> str:
    """Returns the name of a label; the name of 1.0 is "1"."""
    name = str(label)
    is_float = isinstance(label, float | np.floating)
    return name.removesuffix(".0") if is_float else name


def _value(name: str) -> float | str | None:
    """Returns the number or the bool with this name; None for other names."""
    try:
        return float(name)
    except ValueError:
        return name if name in ("True", "False") else None
