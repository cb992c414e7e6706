import math
import re

import numpy as np
import pyarrow
import pytest

from bert.common.errors import UserError
from bert.data.text import array_inputs
from tests.helpers.frames import Frame

TEXTS = ["a", "bb", "ccc"]
TABLE = pyarrow.table({"text": TEXTS, "label": [3, 5, 7]})


@pytest.mark.parametrize(
    "values",
    [
        tuple(TEXTS),
        iter(TEXTS),
        dict.fromkeys(TEXTS).keys(),
        np.array(TEXTS),
        np.array(TEXTS)[:, np.newaxis],
        [[text] for text in TEXTS],
        Frame(text=TEXTS),
        TABLE["text"],
        TABLE.select(["text"]),
        pyarrow.array(TEXTS),
    ],
)
def test_a_column_is_a_column(values):
    listed = array_inputs.strings(values, "texts")
    assert listed == TEXTS
    assert {type(text) for text in listed} == {str}


def test_one_is_a_column_of_one():
    assert array_inputs.strings("bb", "texts") == ["bb"]
    assert array_inputs.strings(np.array("bb"), "texts") == ["bb"]
    assert array_inputs.elements([], "texts") == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (None, "texts is None; expected a list, or a column"),
        (5, "texts is 5; expected a list, or a column"),
        ({"text": TEXTS}, "texts is {'text': ['a', 'bb', 'ccc']}; expected a"),
        ({"a"}, "texts is a set, which has no order; pass a list"),
        (Frame(a=TEXTS, b=TEXTS), "texts of shape [3, 2]; expected one column"),
        (TABLE, "texts of shape [3, 2]; expected one column; pass one"),
        ([("a", "b")], "texts of shape [1, 2]; expected one column; pass one"),
        (["a", math.nan], "texts[1] is nan; expected a str"),
        (pyarrow.array(["a", None]), "texts[1] is None; expected a str"),
        (["a", ["a", "b"]], "texts[1] is ['a', 'b']; expected a str"),
    ],
)
def test_what_is_no_column_of_strings(values, message):
    with pytest.raises(UserError, match=re.escape(message)):
        array_inputs.strings(values, "texts", "pass one")


@pytest.mark.parametrize(
    "values",
    [[3, 5.0, np.float32(7)], TABLE["label"], [[3], [5], [7]], ["3", "5", "7"]],
)
def test_numbers(values):
    numbers = array_inputs.finite(values, "labels")
    assert numbers.dtype == np.float32
    assert numbers.tolist() == [3.0, 5.0, 7.0]


@pytest.mark.parametrize(
    "value", [None, math.nan, -math.inf, "many", 1e39, [], 10**400]
)
def test_what_is_no_number(value):
    message = rf"labels\[1\] is {re.escape(repr(value)[:60])}; expected a fin"
    with pytest.raises(UserError, match=message):
        array_inputs.finite([3.0, value], "labels")


def test_lists_are_lists_or_the_rows_of_a_table():
    names = ("b", "a")
    lists = [["a"], [], ["a", "b"]]
    assert array_inputs.lists(lists, "labels", names) == lists
    for table in (Frame(b=[1, 0], a=[0, 1]), np.eye(2, dtype=int)):
        assert array_inputs.lists(table, "labels", names) == [[1, 0], [0, 1]]
    for values, message in {
        Frame(
            a=[1, 0], b=[0, 1]
        ): "labels of ['a', 'b']; expected the columns b",
        "a": "labels[0] is 'a'; expected a list",
        (None,): "labels[0] is None; expected a list",
        5: "labels is 5; expected a list, or a column",
    }.items():
        with pytest.raises(UserError, match=re.escape(message)):
            array_inputs.lists(values, "labels", names)
    with pytest.raises(UserError, match=r"labels of \[5, 3\]; expected the"):
        array_inputs.lists(np.ones((5, 3)), "labels", names)
