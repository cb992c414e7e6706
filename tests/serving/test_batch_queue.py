"""The queue in front of a predictor."""

import gc
import math
import threading
import time
import weakref

import pytest

from bert.common.errors import UserError
from bert.data.sequences import Encoded
from bert.serving.batch_queue import Busy, _Job
from tests.helpers.http_server import queue_of
from tests.helpers.threads import result, start


class Gate:
    """A predictor whose batches wait until they may end.

    Each word of a text is a sequence, and its output is in upper case.
    """

    def __init__(self, is_open=False):
        self.batches = []
        self.started, self.may_end = threading.Semaphore(0), threading.Event()
        if is_open:
            self.may_end.set()

    def encode(self, texts):
        return [Encoded([(word, []) for word in x.split()]) for x in texts]

    def compute_sequences(self, sequences):
        batch = [word for (word, _), _ in sequences]
        self.batches.append(batch)
        self.started.release()
        assert self.may_end.wait(30)
        if "bad" in batch:
            raise UserError("a bad example")
        return [word.upper() for word in batch]

    def combine(self, encoded, outputs):
        return outputs

    def decode(self, texts, encoded, results):
        return results


def submit(queue, *requests):
    """Sends requests one after the other; returns their futures."""
    futures = []
    for texts in requests:
        before = len(queue._jobs)
        futures.append(start(queue, texts))
        while len(queue._jobs) == before and not futures[-1].done():
            time.sleep(0.001)
    return futures


@pytest.fixture
def blocked():
    """A function that makes a queue whose thread computes a first request."""

    def make(**settings):
        gate, starts = Gate(), []
        queue = queue_of(gate, lambda *x: starts.append(x), **settings)
        first = start(queue, ["first"])
        assert gate.started.acquire(timeout=30)
        return gate, queue, first, starts

    return make


def test_waiting_requests_share_batches_in_order(blocked):
    """A request is not divided, and one that does not fit is the next."""
    gate, queue, first, starts = blocked(max_batch_size=4)
    before = time.perf_counter()
    requests = ["ab", "c", "de", "fgh", "ijk", "l"]
    futures = submit(queue, *requests)
    gate.may_end.set()
    for request, future in zip(requests, futures):
        assert result(future) == [*request.upper()]
    assert result(first) == ["FIRST"]
    expected = [["first"], [*"abc"], [*"de"], [*"fgh"], [*"ijkl"]]
    assert gate.batches == expected
    assert [size for size, _ in starts] == [len(x) for x in expected]
    assert [len(came) for _, came in starts] == [1, 2, 1, 1, 2]
    assert starts[0][1][0] < before < starts[1][1][0] < starts[1][1][1]


def test_a_long_request_is_computed_in_parts_between_others(blocked):
    gate, queue, first, starts = blocked(max_batch_size=2)
    long, other, last = submit(queue, ["a b c d e"], ["x"], ["y z"])
    gate.may_end.set()
    assert result(long) == [*"ABCDE"] and result(other) == ["X"]
    assert result(last) == ["Y", "Z"] and result(first) == ["FIRST"]
    expected = ["first"], [*"ab"], ["x"], [*"yz"], [*"cd"], ["e"]
    assert gate.batches == [*expected]
    assert [len(came) for _, came in starts] == [1, 1, 1, 1, 0, 0]


def test_a_batch_waits_for_more_examples():
    gate = Gate(is_open=True)
    queue = queue_of(gate, max_batch_size=3, max_delay_ms=59_000.0)
    assert [*map(result, [start(queue, x) for x in "abc"])] == [
        *map(list, "ABC")
    ]
    assert [*map(sorted, gate.batches)] == [[*"abc"]]

    # It waits for milliseconds, not for more than a minute.
    queue = queue_of(gate, max_batch_size=3, max_delay_ms=90.0)
    assert result(start(queue, "a")) == ["A"]


def test_a_batch_waits_from_its_first_request():
    """Also if others come later."""
    queue, waits = queue_of(Gate(is_open=True), max_delay_ms=50.0), []
    queue.close()

    class Condition(threading.Condition):
        def wait_for(self, predicate, timeout=None):
            waits.append(timeout)
            return predicate()

    queue._is_closed, queue._changed = False, Condition()
    now = time.perf_counter()
    queue._jobs += [_Job(["a"], now - 97.0), _Job(["b"], now)]
    batch = []
    queue._collect(batch)
    assert [job.sequences for job in batch] == [["a"], ["b"]]
    assert waits[0] is None and max(waits[1:]) < -90


def test_more_sequences_than_may_wait_are_rejected(blocked):
    gate, queue, _, _ = blocked(max_batch_size=2, max_queued_batches=2)
    futures = submit(queue, ["a b"], "c")
    with pytest.raises(Busy):
        result(start(queue, ["d e"]))
    futures += submit(queue, "f")
    with pytest.raises(Busy):
        result(start(queue, "g"))
    gate.may_end.set()
    assert [len(result(x)) for x in futures] == [2, 1, 1]

    # There is space for all of them again.
    for _ in range(3):
        assert result(start(queue, ["a b", "c d"])) == [*"ABCD"]
    with pytest.raises(UserError, match="^5 sequences.* at most 4 in a req"):
        result(start(queue, ["a b c", "d e"]))


def test_an_example_that_fails_fails_alone(blocked):
    gate, queue, _, _ = blocked(max_batch_size=5)
    good, bad, other = submit(queue, ["a"], ["b", "bad"], ["c"])
    gate.may_end.set()
    assert result(good) == ["A"]
    with pytest.raises(UserError, match="a bad example"):
        result(bad)
    assert result(other) == ["C"]
    assert result(start(queue, ["d"])) == ["D"]


def test_an_error_of_the_queue_is_the_answer_and_the_thread_continues():
    """Before, the thread ended, and later requests had no answer."""
    errors = [ZeroDivisionError()]

    def fail_once(*_):
        if errors:
            raise errors.pop()

    queue = queue_of(Gate(is_open=True), fail_once)
    with pytest.raises(ZeroDivisionError):
        result(start(queue, "a"))
    assert result(start(queue, "b")) == ["B"]

    queue = queue_of(Gate(is_open=True), max_delay_ms=math.inf)
    for _ in range(2):
        with pytest.raises(OverflowError):
            result(start(queue, "a"))


def test_a_closed_queue_answers_and_ends(blocked):
    """Requests that wait are answered, and so are later ones."""
    gate, queue, first, _ = blocked(max_batch_size=2)
    futures = submit(queue, "a", ["b c d"], "e")
    closing = start(queue.close)
    while not queue._is_closed:
        time.sleep(0.001)
    late = start(queue, ["late"])
    assert gate.started.acquire(timeout=30)  # in the thread of its request
    assert not closing.done()
    gate.may_end.set()
    found = [x for f in (first, *futures, late) for x in result(f)]
    assert found == ["FIRST", *"ABCDE", "LATE"]
    result(closing)
    assert not queue._thread.is_alive()
    assert queue(["later"]) == ["LATER"]

    # The memory of the model is freed.
    model = weakref.ref(gate)
    del gate, queue, futures, late, first, closing
    gc.collect()
    assert model() is None
