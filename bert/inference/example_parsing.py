"""Checks the examples of lines and requests, by the inputs of a task."""

import functools
from typing import Annotated, NotRequired, TypedDict

import msgspec

from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.inference import ranking
from bert.tasks.swag.task import CHOICE_TEXTS
from bert.tasks.task import Task


def has_choices(task: Task) -> bool:
    """Returns whether the last input of a task is a list of choices."""
    return CHOICE_TEXTS in task.inputs


def reads_pairs(task: Task) -> bool:
    """Returns whether a task reads two texts at once."""
    return ranking.TEXT_B in (*task.inputs, *task.optional_inputs)


def parse(task: Task, values: dict) -> dict:
    """Validates an example or a query, and returns its fields.

    Args:
        task: Task. The task that reads it.
        values: dict. Decoded JSON; unknown keys are ignored.

    Raises:
        UserError: A field is missing or has the wrong type, or the task does
            not read the second text.
    """
    reads_text = ranking.TEXT in task.inputs
    if ranking.TEXT_B in values and reads_text and not reads_pairs(task):
        raise UserError(
            f"the field {ranking.TEXT_B}",
            expected=f"only {ranking.TEXT}: the model reads one text",
        )

    if ranking.is_query(values) and reads_text:
        if not task.can_rank:
            raise ranking.error()
        kind: type = ranking.Query
        expected = ranking.EXPECTED
    else:
        kind = _type_of(tuple(task.inputs), tuple(task.optional_inputs))
        expected = f"an object with strings: {', '.join(task.inputs)}"
        if has_choices(task):
            expected += ", the last a list of strings"

    with json_files.reported(expected=expected):
        return msgspec.convert(values, kind)


@functools.cache
def _type_of(inputs: tuple[str, ...], optional: tuple[str, ...]) -> type:
    """Returns the type of examples with these fields."""
    kinds: dict[str, object] = dict.fromkeys(inputs, str)
    if CHOICE_TEXTS in kinds:
        kinds[CHOICE_TEXTS] = Annotated[list[str], msgspec.Meta(min_length=1)]
    kinds |= dict.fromkeys(optional, NotRequired[str])
    return TypedDict("Example", kinds)  # type: ignore[operator]
