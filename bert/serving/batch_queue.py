"""Queue that batches the requests of many threads for one predictor.

    request -> sequences -> parts of at most max_batch_size -> batches

A short text is one sequence. A long text has a sequence for each window, and
an example with choices has one for each choice.
"""

import collections
import dataclasses
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

import numpy as np

from bert.common.errors import UserError
from bert.inference.predictor import Predictor, sequences_of
from bert.serving.settings import Settings


class Busy(Exception):
    """The queue of the model is full."""


@dataclasses.dataclass
class _Job:
    """A request in the queue.

    Attributes:
        sequences: list. Sequences that are not computed yet.
        came: float. Time of arrival, by time.perf_counter().
        outputs: list of np.ndarray. Outputs of the sequences before them.
        result: Future. The outputs of all sequences.
    """

    sequences: list
    came: float
    outputs: list[np.ndarray] = dataclasses.field(default_factory=list)
    result: Future = dataclasses.field(default_factory=Future)


class BatchQueue:
    """Computes the requests of many threads in one thread, in batches.

    The thread of a request makes its sequences and decodes their outputs. A
    request with more sequences than a batch is computed in parts. After each
    part, other requests have their turn.

    If a batch fails, its requests are computed one by one, so that only the
    request with the invalid example gets the error.

    Args:
        predictor: Predictor. The model.
        settings: Settings. Sizes of the batches and of the queue.
        on_batch: callable. Called before each batch with its number of
            sequences and the arrival times of the requests that start with
            it, by time.perf_counter().
    """

    def __init__(
        self,
        predictor: Predictor,
        settings: Settings,
        on_batch: Callable[[int, list[float]], None],
    ):
        self.predictor, self._on_batch = predictor, on_batch
        self._batch_size = settings.max_batch_size
        self._limit = settings.max_batch_size * settings.max_queued_batches
        self._delay = settings.max_delay_ms / 1000
        self._jobs: collections.deque[_Job] = collections.deque()
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def __call__(self, examples: list[dict]) -> list[dict]:
        """Predicts the examples of a request, in a batch with others.

        Args:
            examples: list of dict. See `Predictor`.

        Raises:
            Busy: The queue is full.
            UserError: The request has too many sequences, or the model rejects
                it.
        """
        came = time.perf_counter()
        encoded = self.predictor.encode(examples)
        job = _Job(sequences_of(encoded), came)
        size = len(job.sequences)
        if size > self._limit:
            raise UserError(
                f"{size:,} sequences, such as windows of a long text",
                expected=f"at most {self._limit:,} in a request",
                fix="divide the request",
            )

        with self._changed:
            waiting = sum(len(x.sequences) for x in self._jobs)
            if waiting + size > self._limit:
                raise Busy
            is_closed = self._is_closed
            if not is_closed:
                self._jobs.append(job)
                self._changed.notify()

        # A newer version has replaced this version in the meantime.
        if is_closed:
            outputs = self.predictor.compute_sequences(job.sequences)
        else:
            outputs = job.result.result()
        results = self.predictor.combine(encoded, outputs)
        return self.predictor.decode(examples, encoded, results)

    def close(self) -> None:
        """Ends the thread after the requests in the queue, and waits for it.

        The thread holds the model, whose memory can be freed afterwards.
        """
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while True:
            batch: list[_Job] = []
            try:
                self._collect(batch)
                if not batch:
                    return
                self._on_batch(
                    sum(self._part(x) for x in batch),
                    [x.came for x in batch if not x.outputs],
                )
            except Exception as error:  # the thread continues
                for job in batch:
                    job.result.set_exception(error)
            else:
                self._compute(batch)

    def _collect(self, batch: list[_Job]) -> None:
        """Moves the next requests to a batch, or none if the queue is closed.

        A part that does not fit waits for the next batch.
        """
        free, wait = self._batch_size, None
        with self._changed:
            while free > 0:
                self._changed.wait_for(
                    lambda: self._jobs or self._is_closed, wait
                )
                if not self._jobs:
                    return
                size = self._part(self._jobs[0])
                if size > free:
                    return
                batch.append(self._jobs.popleft())
                free -= size
                wait = batch[0].came + self._delay - time.perf_counter()

    def _compute(self, batch: list[_Job]) -> None:
        """Computes the next part of each request."""
        part = [x for job in batch for x in job.sequences[: self._part(job)]]
        try:
            outputs = iter(self.predictor.compute_sequences(part))
        except Exception as error:
            if len(batch) == 1:
                batch[0].result.set_exception(error)
                return
            for job in batch:
                self._compute([job])
            return

        for job in batch:
            size = self._part(job)
            job.outputs += itertools.islice(outputs, size)
            job.sequences = job.sequences[size:]
            if not job.sequences:
                job.result.set_result(job.outputs)
                continue
            with self._changed:
                self._jobs.append(job)

    def _part(self, job: _Job) -> int:
        """Returns the number of sequences in the next part of a request."""
        return min(len(job.sequences), self._batch_size)
