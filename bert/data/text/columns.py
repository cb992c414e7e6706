"""Columns of strings and numbers, whatever holds them.

list, array, tensor, column of a table, table of one column -> list
"""

import math
from collections.abc import Iterable, Mapping, Sized

import numpy as np

from bert.common.errors import UserError


def elements(values, name: str, fix: str | None = None) -> list:
    """Returns the elements of a column.

    Args:
        values: an iterable, or what NumPy takes for an array, such as a table
            of pandas: [N] or [N, 1]; one string or number: [1].
        name: of the argument, for messages.
        fix: advice for the message, where there are several columns.

    Raises:
        UserError: it is no column, or there are several.
    """
    array = _array(values, name)
    if array.ndim > 1 and array.shape[1:] != (1,):
        raise UserError(
            f"{name} of shape {list(array.shape)}",
            expected="one column",
            fix=fix,
        )
    return array.reshape(-1).tolist()


def lists(values, name: str, columns: tuple[str, ...]) -> list:
    """Returns a column of lists, or the rows of a table.

    Args:
        values: an iterable of lists, or [N, C] with these columns.
        name: of the argument, for messages.
        columns: names of the C columns.

    Raises:
        UserError: it has other columns, or an element is no list.
    """
    array = _array(values, name)

    # A table names its columns; an array has only their number.
    names = getattr(values, "column_names", getattr(values, "columns", ()))
    titles = list(names)
    width = array.shape[1] if array.ndim > 1 else len(columns)
    if (tuple(map(str, titles)) or columns) != columns or (
        hasattr(values, "__array__") and width != len(columns)
    ):
        raise UserError(
            f"{name} of {titles or list(array.shape)}",
            expected=f"the columns {', '.join(columns)}",
        )

    for i, value in enumerate(array.tolist()):
        if isinstance(value, str) or not isinstance(value, Sized):
            raise UserError(f"{name}[{i}] is {value!r:.60}", expected="a list")

    return array.tolist()


def ragged(values, name: str) -> list[list]:
    """Returns a column of lists, of any lengths.

    Args:
        values: an iterable of lists or arrays, or a column of them.
        name: of the argument, for messages.

    Raises:
        UserError: it is no column, or an element is no list.
    """
    rows = objects(values, name)
    for i, row in enumerate(rows):
        is_scalar = isinstance(row, str | bytes | Mapping) or (
            not isinstance(row, Sized) or getattr(row, "shape", None) == ()
        )
        if is_scalar:
            raise UserError(f"{name}[{i}] is {row!r:.60}", expected="a list")
    return [
        row.tolist() if isinstance(row, np.ndarray) else list(row)
        for row in rows
    ]


def objects(values, name: str) -> list:
    """Returns a column of any objects, of which some may be lists.

    Args:
        values: an iterable, or a column.
        name: of the argument, for messages.

    Raises:
        UserError: it is no column.
    """
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise UserError(
            f"{name} is {values!r:.60}", expected="a list, or a column"
        )

    # A table has one column of lists; an array may have a row for each.
    if hasattr(values, "columns") or hasattr(values, "column_names"):
        return elements(values, name)
    if hasattr(values, "__array__"):
        return list(_array(values, name))
    return list(values)


def strings(values, name: str, fix: str | None = None) -> list[str]:
    """Returns a list of one or several strings.

    Args:
        values: a string, or a column of strings.
        name, fix: as for `elements`.

    Raises:
        UserError: an element is another object, such as bytes or None.
    """
    values = elements(values, name, fix)
    for i, value in enumerate(values):
        if not isinstance(value, str):
            raise UserError(f"{name}[{i}] is {value!r:.60}", expected="a str")
    return values


def finite(values, name: str) -> np.ndarray:
    """Returns a column of finite numbers, float32 [N].

    Args:
        values: a column of numbers.
        name: of the argument, for messages.

    Raises:
        UserError: an element is no number, such as None, NaN or infinity.
    """
    values = elements(values, name)

    # A number too large for float32 becomes infinite, and is rejected.
    with np.errstate(over="ignore"):
        array = np.array([_number(value) for value in values], np.float32)
    for i in np.flatnonzero(~np.isfinite(array))[:1]:
        raise UserError(
            f"{name}[{i}] is {values[i]!r:.60}", expected="a finite number"
        )
    return array


def _array(values, name: str) -> np.ndarray:
    """The values as an array of objects."""
    # NumPy makes no array of an iterator, so others become lists.
    is_array = isinstance(values, str) or hasattr(values, "__array__")
    if isinstance(values, Mapping) or not (
        is_array or isinstance(values, Iterable)
    ):
        raise UserError(
            f"{name} is {values!r:.60}", expected="a list, or a column"
        )
    return np.asarray(values if is_array else list(values), object)


def _number(value) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
