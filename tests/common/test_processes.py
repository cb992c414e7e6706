"""Work on several processes: results in order, errors, ends."""

import os

import pytest

from common import processes
from common.errors import UserError


def make_worker():
    """What a process does with an item."""
    return work


def work(item):
    if item == 13:
        raise UserError("found 13")
    return item * 7, os.getpid()


@pytest.mark.parametrize("number", [1, 2])
def test_results_come_in_the_order_of_the_items(number):
    found = list(processes.map_in_order(make_worker, range(11), number))
    assert [result for result, _ in found] == [7 * i for i in range(11)]
    here = {process for _, process in found} == {os.getpid()}
    assert here == (number == 1)


@pytest.mark.parametrize("number", [1, 2])
def test_an_error_comes_after_the_results_before_it(number):
    results = []
    with pytest.raises(UserError, match="found 13"):
        for result, _ in processes.map_in_order(make_worker, range(17), number):
            results.append(result)
    assert results == [7 * i for i in range(13)]
