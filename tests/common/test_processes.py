"""Work on several processes: results in order, errors, ends."""

import itertools
import os
import signal
import subprocess
import sys
import threading

import pytest

from bert.common import processes
from bert.common.errors import UserError
from tests.helpers import process_ends


def test_cores_are_counted_on_macos_too(monkeypatch):
    """Where Python cannot tell which cores a process may use."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5, 7})
    monkeypatch.setattr(os, "cpu_count", lambda: 11)
    assert processes.num_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert processes.num_cores() == 11


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


def make_nothing():
    """A worker of no use."""


def test_one_process_reports_that_it_works():
    called = threading.Event()
    with processes.Pool(make_nothing, 1) as pool:
        wait = pool.map(lambda _, item: called.wait(item), [10], called.set)
        assert list(wait) == [True]


def keep(_, item):
    return item


def test_few_items_are_held_at_once():
    taken = []
    items = (taken.append(i) or i for i in itertools.count())
    with processes.Pool(make_nothing, 2) as pool:
        results = pool.map(keep, items)
        for number in range(3):
            assert next(results) == number
            assert len(taken) == number + 2 * processes.AHEAD


def wait(_, item):
    threading.Event().wait()


def fail_first(_, item):
    """Fails at the first item; waits with the others."""
    if item[0]:
        raise UserError("found 1")
    threading.Event().wait()


def fail_or_send(_, item):
    if item == 12:
        raise UserError("found 12")
    return bytes(1 << 26)


def be_killed(_, item):
    os.kill(os.getpid(), signal.SIGKILL)


def fail_to_start():
    raise UserError("no such vocabulary")


@pytest.mark.parametrize(
    ("make", "work", "items", "message"),
    [
        (fail_to_start, wait, [5], "no such vocabulary"),
        (make_nothing, fail_first, [b"1", b"\0"], "found 1"),
        # A half result would be waited for, for ever.
        (make_nothing, fail_or_send, range(11, 40), "found 12"),
        # Python 3.11.2 waited for ever for somebody to receive the next item.
        (
            make_nothing,
            fail_first,
            [bytes([i == 0]) + bytes(1 << 22) for i in range(40)],
            "found 1",
        ),
        (
            make_nothing,
            be_killed,
            range(5),
            "one of 3 processes was killed; expected enough memory for all of "
            "them; pass a smaller --num_processes",
        ),
    ],
    ids=["start", "work", "send", "receive", "killed"],
)
def test_an_error_ends_all_processes(make, work, items, message):
    with (
        pytest.raises((UserError, processes.KilledProcess)) as error,
        processes.Pool(make, 3) as pool,
    ):
        list(pool.map(work, items))
    assert str(error.value) == message


PARENT = """
import os, signal, threading
from bert.common import processes

# Background processes of a shell, and their children, ignore SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)

def make():
    return None

def work(_, item):
    os.write(1, b"%d\\n" % os.getpid())  # at once; print may write two parts
    threading.Event().wait()

if __name__ == "__main__":
    with processes.Pool(make, 2) as pool:
        list(pool.map(work, range(2)))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_processes_end_with_their_parent(tmp_path, number):
    """One of them is stopped when the parent ends: it ends when it wakes."""
    (tmp_path / "parent.py").write_text(PARENT)
    with subprocess.Popen(
        [sys.executable, tmp_path / "parent.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
    ) as parent:
        workers = [int(parent.stdout.readline()) for _ in range(2)]
        handles = [os.pidfd_open(worker) for worker in workers]
        if number == signal.SIGKILL:
            os.kill(workers[0], signal.SIGSTOP)
        parent.send_signal(number)
        parent.wait(60)
        assert process_ends.wait_for_end(handles[1])
        if number == signal.SIGKILL:
            assert os.path.exists(f"/proc/{workers[0]}")
            os.kill(workers[0], signal.SIGCONT)
        assert process_ends.wait_for_end(handles[0])
        for handle in handles:
            os.close(handle)
