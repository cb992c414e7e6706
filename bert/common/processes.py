"""Work on several processes of this machine."""

import collections
import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import Any

# TensorFlow's threads do not survive a fork.
SPAWN = multiprocessing.get_context("spawn")
AHEAD = 3  # items of a process, worked on and waiting

_make_worker: Callable  # of a process in the pool
_worker = None
_outside_item = threading.Lock()  # held when no item is worked on


class Pool:
    """Processes that each have a worker; a context manager.

    The processes end at once when the context ends with an error, and when
    the process that started them ends in any way.

    Args:
        make_worker: called once in each process; can be pickled.
        num_processes: number of processes; 1 works in this process.
    """

    def __init__(self, make_worker: Callable[[], Any], num_processes: int):
        self._num_processes = num_processes
        if num_processes == 1:
            self._worker = make_worker()
            return

        # The pipe breaks when this process ends, in whatever way.
        ends, self._alive = SPAWN.Pipe(duplex=False)
        # Its private queue is closed below.
        self._executor: Any = concurrent.futures.ProcessPoolExecutor(
            num_processes, SPAWN, _start, (make_worker, ends)
        )

    def __enter__(self):
        return self

    def __exit__(self, kind, *error):
        if self._num_processes == 1:
            return
        if kind:
            self._alive.close()
            # Before Python 3.11.5 an item that nobody receives blocks the
            # shutdown (github.com/python/cpython/issues/94777).
            self._executor._call_queue._reader.close()
        self._executor.shutdown(cancel_futures=True)
        self._alive.close()

    def map(
        self,
        function: Callable[[Any, Any], Any],
        items: Iterable,
        on_wait: Callable[[], None] = lambda: None,
    ) -> Iterator[Any]:
        """Computes a result from each item, in the order of the items.

        At most `AHEAD` items for each process are held at once.

        Args:
            function: called with the worker and an item; can be pickled.
            items: any number of them.
            on_wait: called about every second, in one process by a thread.

        Yields:
            the results.

        Raises:
            KilledProcess: a process was killed.
        """
        if self._num_processes == 1:
            ended = threading.Event()
            report = threading.Thread(
                target=_repeat, args=[on_wait, ended], daemon=True
            )
            report.start()
            try:
                for item in items:
                    yield function(self._worker, item)
            finally:
                ended.set()
            return

        # Bounded, so that the items need not fit into memory.
        waiting = collections.deque()

        def next_result():
            while concurrent.futures.wait([waiting[0]], 1).not_done:
                on_wait()
            return waiting.popleft().result()

        try:
            for item in items:
                waiting.append(self._executor.submit(_run, function, item))
                if len(waiting) == AHEAD * self._num_processes:
                    yield next_result()
            while waiting:
                yield next_result()
        except BrokenProcessPool:
            raise KilledProcess(
                f"one of {self._num_processes} processes was killed; expected "
                "enough memory for all of them; pass a smaller --num_processes"
            ) from None


class KilledProcess(RuntimeError):
    """A process of a pool ended before its work."""

    exit_code = 2


def map_in_order(
    make_worker: Callable[[], Callable],
    items: Iterable,
    num_processes: int,
) -> Iterator[Any]:
    """Computes a result from each item, in the order of the items.

    Args:
        make_worker: called once in each process; returns the function of an
            item. Both can be pickled.
        items: as for `Pool.map`.
        num_processes: as for `Pool`.

    Yields:
        the results.

    Raises:
        KilledProcess: a process was killed.
    """
    with Pool(make_worker, num_processes) as pool:
        yield from pool.map(_call, items)


def _call(worker: Callable, item) -> Any:
    return worker(item)


def _repeat(on_wait: Callable[[], None], ended: threading.Event) -> None:
    while not ended.wait(1):
        on_wait()


def _start(make_worker: Callable[[], Any], ends) -> None:
    global _make_worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the pool ends it
    _outside_item.acquire()
    threading.Thread(target=_end_with_pool, args=[ends], daemon=True).start()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # its errors are raised too
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # no memory of a GPU
    _make_worker = make_worker


def _end_with_pool(ends) -> None:
    """Waits for the end of the pipe, which only the first process holds.

    A process does not end while it sends a result: the pool would wait for
    the rest, for ever.
    """
    parent = multiprocessing.parent_process()
    with contextlib.suppress(EOFError, OSError):
        ends.recv()
    while parent.is_alive() and not _outside_item.acquire(timeout=1):
        pass
    os._exit(1)


def _run(function: Callable[[Any, Any], Any], item) -> Any:
    global _worker
    _outside_item.release()
    try:
        if _worker is None:  # here, so that its errors are those of an item
            _worker = _make_worker()
        return function(_worker, item)
    finally:
        _outside_item.acquire()
