"""The labels of a classifier of texts: their names, and labels to ids."""

import numbers
from collections.abc import Callable

import numpy as np

from bert.common.errors import UserError
from bert.common.progress import say
from bert.data.label_kinds import (
    CLASSES,
    KINDS,
    MULTI_LABEL,
    REGRESSION,
    Labels,
)
from bert.data.text.columns import elements, finite, lists
from bert.tasks import run_folder

_NUMBER = (numbers.Number, np.bool_)
_LIKE_BITS = ({"0"}, {"0", "1"}, {"False"}, {"False", "True"})  # names


def of_encoder(encoder) -> Labels | None:
    """Returns the labels that an encoder was fine-tuned with, if it was."""
    task = getattr(getattr(encoder, "checkpoint", None), "task", None)
    if not task or task["kind"] not in KINDS:
        return None
    return Labels.of_task(task)


def chosen(
    given, trained: Labels | None, multi_label: bool, regression: bool
) -> Labels:
    """Returns the labels of the arguments, or those of a fine-tuned model.

    Args:
        given: names, numbers or bools, in order; None: those of the model.
        trained: the labels of the model.
        multi_label, regression: the kind.

    Raises:
        UserError: there are none, a name is missing or occurs twice, or they
            are those of the model in another order.
    """
    if regression:
        return Labels(REGRESSION)
    if given is None and trained is None:
        raise UserError("no labels", fix="pass their names")
    if given is None and not multi_label:
        return trained

    given = trained.names if given is None else given
    kind = MULTI_LABEL if multi_label else CLASSES
    labels = Labels(kind, names_of(given, 2 - multi_label))
    check_order(labels, trained)
    return trained if labels == trained else labels


def names_of(given, fewest: int = 2) -> tuple[str, ...]:
    """Returns the names of labels that are names, numbers or bools.

    Raises:
        UserError: a name is missing or occurs twice, or there are too few.
    """
    given = elements(given, "labels")
    names = tuple(map(name_of, given))
    is_whole = all(
        isinstance(x, (str, *_NUMBER)) and x == x for x in given
    )  # no NaN
    if not is_whole or len(set(names)) < max(len(names), fewest):
        raise UserError(
            f"labels={given!r:.60}", expected="two or more names, once"
        )
    return names


def check_order(labels: Labels, trained: Labels | None) -> None:
    """Rejects the labels of a model in another order.

    The same names in another order would be a mistake nobody sees.

    Args:
        labels: the labels.
        trained: those of the model, if any.

    Raises:
        UserError: the order differs.
    """
    if (
        trained not in (None, labels)
        and labels.kind == trained.kind
        and sorted(labels.names) == sorted(trained.names)
    ):
        raise UserError(
            f"labels={list(labels.names)!r:.60}",
            expected=f"the order of training, {shown(trained)}",
            fix="pass none, for those of the model",
        )


def say_new_head(path: str, trained: Labels, labels: Labels) -> None:
    """Says that the head of a model is not used."""
    say(
        f"a new head: {path} has one for {shown(trained)}, not for "
        f"{shown(labels)}"
    )


def shown(labels: Labels) -> str:
    """Formats kind and names of labels for a message."""
    return f"{labels.kind} {run_folder.shown({'labels': labels.names})}"


def ids(values, labels: Labels) -> np.ndarray:
    """Converts the labels of texts to what a model is trained on.

    Args:
        values: N names, or numbers or bools that are names; the number from 0
            of a name, where no name is a number; for MULTI_LABEL, lists of
            them, or rows of 0 and 1, of names such as 0 and 1 only in a
            table; for REGRESSION, numbers.
        labels: kind and names of the labels.

    Returns:
        for CLASSES, ids, int32 [N]; for MULTI_LABEL, 0 and 1, float32 [N, C];
        for REGRESSION, float32 [N].

    Raises:
        UserError: a label is unknown.
    """
    if labels.kind == REGRESSION:
        return finite(values, "labels")

    names = labels.names
    number = numbering(names)
    if labels.kind == CLASSES:
        fix = "pass a name or number for each text, no one-hot rows"
        values = elements(values, "labels", fix)
        return np.array([number(label) for label in values], np.int32)

    # [0, 1] may be two names; only a table then holds truth values.
    is_table = hasattr(values, "__array__") and np.ndim(values) == 2
    has_bits = is_table or set(names) not in _LIKE_BITS
    values = lists(values, "labels", names)
    rows = np.zeros((len(values), len(names)), np.float32)
    for row, entry in zip(rows, values):
        if has_bits and len(entry) == len(names) and set(entry) <= {0, 1}:
            row[:] = entry
        else:
            row[[number(label) for label in entry]] = 1.0
    return rows


def numbering(names: tuple[str, ...]) -> Callable[..., int]:
    """Makes a function from a label, or the number of a name, to a number.

    It raises a UserError if there is no such label. Its second argument, such
    as "tags[7]: ", begins the message.
    """
    # 2 is a name or a position, never both.
    indices = {name: i for i, name in enumerate(names)}
    positions = range(0 if any(map(_is_value, names)) else len(names))

    def number(label, where: str = "") -> int:
        if (name := name_of(label)) in indices:
            return indices[name]
        is_number = isinstance(label, _NUMBER)  # not NA of pandas
        if not is_number or label not in positions:
            raise UserError(
                f"{where}the label {label!r:.60}",
                expected=f"one of {', '.join(names)}",
            )
        return int(label)

    return number


def name_of(label) -> str:
    """The name of a label; that of 1.0 is "1"."""
    name = str(label)
    is_float = isinstance(label, float | np.floating)
    return name.removesuffix(".0") if is_float else name


def _is_value(name: str) -> bool:
    """Whether a label of this name is a number or a bool."""
    try:
        float(name)
    except ValueError:
        return name in ("True", "False")
    return True
