"""Queue that batches the requests of many threads for one predictor."""

import concurrent.futures
import queue
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bert.inference import ranking
from bert.inference.predictor import Predictor
from bert.serving.settings import Settings


class Busy(Exception):
    """The queue of the model is full."""


class _Job(NamedTuple):
    """A request in the queue.

    Attributes:
        examples: list of dict. Fields of each example.
        size: int. Number of examples; each text of a query counts.
        came: float. Time of arrival, by time.perf_counter().
        result: Future. The predictions.
    """

    examples: list[dict]
    size: int
    came: float
    result: concurrent.futures.Future


class BatchQueue:
    """Computes the requests of many threads in one thread, in batches.

    If a batch fails, its requests are computed one by one, so that only the
    request with the invalid example gets the error.

    Args:
        predictor: Predictor. The model.
        settings: Settings. Sizes of the batches and of the queue.
        on_batch: callable. Called before each batch with the arrival time of
            each example, by time.perf_counter(), float64 [b].
    """

    def __init__(
        self,
        predictor: Predictor,
        settings: Settings,
        on_batch: Callable[[np.ndarray], None],
    ):
        self.predictor, self._settings = predictor, settings
        self._on_batch = on_batch
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._waiting, self._is_closed = 0, False
        self._lock = threading.Lock()
        self._limit = settings.max_batch_size * settings.max_queued_batches
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def __call__(self, examples: list[dict]) -> list[dict]:
        """Predicts the examples of a request, in a batch with others.

        Args:
            examples: list of dict. See `Predictor`.

        Raises:
            Busy: The queue is full.
            UserError: The model rejects the request.
        """
        result: concurrent.futures.Future = concurrent.futures.Future()
        size = ranking.count(examples)
        job = _Job(examples, size, time.perf_counter(), result)
        with self._lock:
            if self._waiting and self._waiting + size > self._limit:
                raise Busy
            is_closed = self._is_closed
            if not is_closed:
                self._waiting += size
                self._jobs.put(job)

        # A newer version has replaced this version in the meantime.
        if is_closed:
            self._compute([job])
        return result.result()

    def close(self) -> None:
        """Ends the thread after the requests in the queue, and waits for it.

        The thread holds the model, whose memory can be freed afterwards.
        """
        with self._lock:
            self._is_closed = True
            self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        held = self._jobs.get()
        while held is not None:
            batch, held = self._collect(held)
            with self._lock:
                self._waiting -= sum(job.size for job in batch)
            came = [[job.came] * job.size for job in batch]
            self._on_batch(np.concatenate(came))
            self._compute(batch)
            held = self._jobs.get() if held is None else held

    def _collect(self, first: _Job) -> tuple[list[_Job], _Job | None]:
        """Returns a batch, and the next job if it did not fit."""
        settings, batch = self._settings, [first]
        free = settings.max_batch_size - first.size
        deadline = first.came + settings.max_delay_ms / 1000
        while free > 0:
            wait = deadline - time.perf_counter()
            try:
                job = self._jobs.get(wait > 0, max(wait, 0) or None)
            except queue.Empty:
                break
            if job is None:
                self._jobs.put(None)  # for the next call
                break
            if job.size > free:
                return batch, job
            batch.append(job)
            free -= job.size
        return batch, None

    def _compute(self, batch: list[_Job]) -> None:
        try:
            examples = [x for job in batch for x in job.examples]
            results = iter(self.predictor(examples))
            for job in batch:
                job.result.set_result([next(results) for _ in job.examples])
        except Exception as error:
            if len(batch) == 1:
                batch[0].result.set_exception(error)
                return
            for job in batch:
                self._compute([job])
