"""Converts columns of strings and numbers from any container to lists.

list, array, tensor, column of a table, table of one column -> list
"""

import math
from collections.abc import Iterable, Mapping, Sized

import numpy as np

from bert.common.errors import UserError


def elements(values, name: str, fix: str | None = None) -> list:
    """Returns the elements of a column.

    Args:
        values: Iterable or array-like, such as a pandas table: [N] or [N, 1].
            One string or number counts as [1].
        name: str. Name of the argument, for messages.
        fix: str or None. Advice for the message about several columns.

    Raises:
        UserError: `values` is not a column, or has several columns.
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
        values: Iterable of lists, or table [N, C] with these columns.
        name: str. Name of the argument, for messages.
        columns: tuple of str. Names of the C columns.

    Raises:
        UserError: `values` has other columns, or an element is not a list.
    """
    array = _array(values, name)

    # A table has column names; an array has only their number.
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
        values: Iterable or column of lists or arrays.
        name: str. Name of the argument, for messages.

    Raises:
        UserError: `values` is not a column, or an element is not a list.
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
    """Returns a column of any objects, which may be lists.

    Args:
        values: Iterable or column.
        name: str. Name of the argument, for messages.

    Raises:
        UserError: `values` is not a column.
    """
    _check_column(values, name)
    if isinstance(values, str):
        raise _not_a_column(values, name)

    # A table has one column of lists; an array may have one row per list.
    if hasattr(values, "columns") or hasattr(values, "column_names"):
        return elements(values, name)
    if hasattr(values, "__array__"):
        return list(_array(values, name))
    return list(values)


def strings(values, name: str, fix: str | None = None) -> list[str]:
    """Returns a list of one or several strings.

    Args:
        values: str or column of strings.
        name, fix: See `elements`.

    Raises:
        UserError: An element is not a str, such as bytes or None.
    """
    values = elements(values, name, fix)
    for i, value in enumerate(values):
        if not isinstance(value, str):
            raise UserError(f"{name}[{i}] is {value!r:.60}", expected="a str")
    return values


def finite(values, name: str) -> np.ndarray:
    """Returns a column of finite numbers, float32 [N].

    Args:
        values: Column of numbers.
        name: str. Name of the argument, for messages.

    Raises:
        UserError: An element is not a finite number, such as None or NaN.
    """
    values = elements(values, name)

    # Numbers that are too large for float32 become infinite: rejected.
    with np.errstate(over="ignore"):
        array = np.array([_number(value) for value in values], np.float32)
    for i in np.flatnonzero(~np.isfinite(array))[:1]:
        raise UserError(
            f"{name}[{i}] is {values[i]!r:.60}", expected="a finite number"
        )
    return array


def _array(values, name: str) -> np.ndarray:
    """Returns the values as an array of objects."""
    # NumPy cannot convert iterators, so they become lists.
    is_array = isinstance(values, str) or hasattr(values, "__array__")
    if not is_array:
        _check_column(values, name)
    return np.asarray(values if is_array else list(values), object)


def _check_column(values, name: str) -> None:
    """Rejects values without an order of their elements."""
    if isinstance(values, set | frozenset):
        kind = type(values).__name__
        raise UserError(
            f"{name} is a {kind}, which has no order", fix="pass a list"
        )
    if isinstance(values, Mapping) or not isinstance(values, Iterable):
        raise _not_a_column(values, name)


def _not_a_column(values, name: str) -> UserError:
    return UserError(
        f"{name} is {values!r:.60}", expected="a list, or a column"
    )


def _number(value) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
