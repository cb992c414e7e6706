"""The queue in front of a predictor."""

import concurrent.futures
import gc
import threading
import time
import weakref

import pytest

from bert.common.errors import UserError
from bert.serving.batch_queue import Busy
from tests.helpers.http_server import queue_of
from tests.helpers.predictors import predictor_of


class Gate:
    """A predictor that records its batches, and waits until it may end."""

    def __init__(self):
        self.batches = []
        self.started, self.may_end = threading.Semaphore(0), threading.Event()
        self._predictor = predictor_of(self._answer)

    def __call__(self, examples):
        self.batches.append([x["text"] for x in examples])
        self.started.release()
        assert self.may_end.wait(30)
        return self._predictor(examples)

    def _answer(self, example):
        if example["text"] == "bad":
            raise UserError("a bad example")
        return {"answer": example["text"].upper()}


@pytest.fixture
def pool():
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        yield pool


def submit(pool, queue, *requests):
    """Sends requests one after the other; returns their futures."""
    futures = []
    for request in requests:
        before = queue._waiting
        examples = [{"text": text} for text in request]
        futures.append(pool.submit(queue, examples))
        while queue._waiting == before and not futures[-1].done():
            time.sleep(0.001)
    return futures


@pytest.fixture
def blocked(pool):
    """A function that makes a queue whose thread computes a first request."""

    def make(**settings):
        gate, came = Gate(), []
        queue = queue_of(gate, came.append, **settings)
        first = pool.submit(queue, [{"text": "first"}])
        gate.started.acquire()
        return gate, queue, first, came

    return make


def test_waiting_requests_share_batches_in_order(pool, blocked):
    """A request is not split, and one that does not fit waits for the next."""
    gate, queue, first, came = blocked(max_batch_size=4)
    start = time.perf_counter()
    requests = ["ab", "c", "de", "fgh", "ijklm", "n"]
    futures = submit(pool, queue, *requests)
    gate.may_end.set()
    for request, future in zip(requests, futures):
        assert future.result() == [{"answer": x.upper()} for x in request]
    assert first.result() == [{"answer": "FIRST"}]
    expected = [["first"], [*"abc"], [*"de"], [*"fgh"], [*"ijklm"], ["n"]]
    assert gate.batches == expected
    assert [len(x) for x in came] == [len(x) for x in expected]
    assert came[1][0] == came[1][1] < came[1][2] and came[0] < start


def test_a_batch_waits_for_more_examples(pool):
    gate = Gate()
    gate.may_end.set()
    queue = queue_of(gate, max_batch_size=3, max_delay_ms=20_000.0)
    futures = submit(pool, queue, "a", "b", "c")
    assert [x.result(10) for x in futures]
    assert gate.batches == [[*"abc"]]


def test_more_examples_than_may_wait_are_rejected(pool, blocked):
    gate, queue, _, _ = blocked(max_batch_size=2, max_queued_batches=2)
    futures = submit(pool, queue, "ab", "c")
    with pytest.raises(Busy):
        queue([{"text": "d"}, {"text": "e"}])
    futures += submit(pool, queue, "f")
    with pytest.raises(Busy):
        queue([{"text": "g"}])
    gate.may_end.set()
    assert [len(x.result()) for x in futures] == [2, 1, 1]


def test_a_request_larger_than_the_queue_is_answered_while_none_waits(blocked):
    gate, queue, first, _ = blocked(max_batch_size=1, max_queued_batches=1)
    gate.may_end.set()
    first.result()
    assert len(queue([{"text": x} for x in "abc"])) == 3


def test_texts_of_a_query_count_as_examples(pool):
    """Before, a query of any number of texts counted as one example."""
    gate, sizes = Gate(), []
    queue = queue_of(gate, lambda came: sizes.append(len(came)))
    gate.may_end.set()
    query = {"text": "a", "texts": [*"bcd"]}
    gate._predictor = lambda examples: examples
    assert queue([query, {"text": "e"}]) == [query, {"text": "e"}]
    assert sizes == [4]


def test_an_example_that_fails_fails_alone(pool, blocked):
    gate, queue, _, _ = blocked(max_batch_size=5)
    good, bad, other = submit(pool, queue, ["a"], ["b", "bad"], ["c"])
    gate.may_end.set()
    assert good.result() == [{"answer": "A"}]
    with pytest.raises(UserError, match="a bad example"):
        bad.result()
    assert other.result() == [{"answer": "C"}]
    assert queue([{"text": "d"}]) == [{"answer": "D"}]


def test_a_closed_queue_answers_and_ends(pool, blocked):
    """Requests that wait are answered, and so are later ones."""
    gate, queue, first, _ = blocked(max_batch_size=2)
    futures = submit(pool, queue, "a", "bc", "d")
    closing = pool.submit(queue.close)
    while not queue._is_closed:
        time.sleep(0.001)
    late = pool.submit(queue, [{"text": "late"}])
    gate.started.acquire()  # computed in the thread of its request
    assert not closing.done()
    gate.may_end.set()
    found = [x["answer"] for f in (first, *futures, late) for x in f.result()]
    assert found == ["FIRST", *"ABCD", "LATE"]
    closing.result()
    assert not queue._thread.is_alive()
    assert queue([{"text": "later"}]) == [{"answer": "LATER"}]

    # The memory of the model is freed.
    model = weakref.ref(gate)
    del gate, queue, futures, late, first
    gc.collect()
    assert model() is None
