"""Parallel work on processes of this machine, and detection of forks."""

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

from bert.common import tensorflow_log
from bert.common.errors import UserError

CPU_INFO = "/proc/cpuinfo"

SPAWN = multiprocessing.get_context("spawn")
AHEAD = 3  # running and waiting items per process

# A fork copies the calling thread only. TensorFlow would wait for its other
# threads forever, and OpenVINO would abort the process.
TENSORFLOW, OPENVINO = "TensorFlow", "OpenVINO"
_started: set[str] = set()  # started in this process or its parents
_lost: set[str] = set()  # started before this process was forked

os.register_at_fork(after_in_child=lambda: _lost.update(_started))

_make_worker: Callable  # set in each process of the pool
_worker = None
_outside_item = threading.Lock()  # held while no item is processed


class Pool:
    """Pool of processes that each have a worker object; a context manager.

    The processes end at once when the context ends with an error, and when
    the process that started them ends or is killed.

    Args:
        make_worker: callable. Called once in each process to make its worker;
            must be picklable.
        num_processes: int. Number of processes; 1 works in this process.
    """

    def __init__(self, make_worker: Callable[[], Any], num_processes: int):
        self._num_processes = num_processes
        if num_processes == 1:
            self._worker = make_worker()
            return

        # The pipe breaks when this process ends or is killed.
        ends, self._alive = SPAWN.Pipe(duplex=False)
        # Any: its private queue is closed below.
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
            # Before Python 3.11.5 an item that is not received blocks the
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
            function: callable. Called with the worker and an item; must be
                picklable.
            items: iterable. Any number of items.
            on_wait: callable. Called about every second while waiting for a
                result; with one process, called by a thread.

        Yields:
            The results.

        Raises:
            KilledProcess: A process was killed.
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

        # The queue is bounded, so that the items need not fit into memory.
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
    """Raised if a process of a pool ended before it finished its work."""

    exit_code = 2


def map_in_order(
    make_worker: Callable[[], Callable],
    items: Iterable,
    num_processes: int,
) -> Iterator[Any]:
    """Computes a result from each item, in the order of the items.

    Args:
        make_worker: callable. Called once in each process; returns the
            function to call with each item. Both must be picklable.
        items: iterable. Any number of items.
        num_processes: int. Number of processes; 1 works in this process.

    Yields:
        The results.

    Raises:
        KilledProcess: A process was killed.
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the pool ends the process
    _outside_item.acquire()
    threading.Thread(target=_end_with_pool, args=[ends], daemon=True).start()
    os.environ[tensorflow_log.LEVEL] = "3"  # errors are raised anyway
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # use no GPU memory
    tensorflow_log.hold_back_import()
    _make_worker = make_worker


def _end_with_pool(ends) -> None:
    """Ends this process when the pipe, held by the parent process, is closed.

    A process does not end while it sends a result, because the pool would
    wait forever for the rest of the result.
    """
    parent = multiprocessing.parent_process()
    with contextlib.suppress(EOFError, OSError):
        ends.recv()
    while parent and parent.is_alive() and not _outside_item.acquire(timeout=1):
        pass
    os._exit(1)


def _run(function: Callable[[Any, Any], Any], item) -> Any:
    global _worker
    _outside_item.release()
    try:
        if _worker is None:  # made here, so that errors reach the caller
            _worker = _make_worker()
        return function(_worker, item)
    finally:
        _outside_item.acquire()


def cpu_info(*names: str) -> list[str]:
    """Reads lines of /proc/cpuinfo about the first processor.

    Args:
        *names: starts of the lines, such as "flags".

    Returns:
        list of str. The lines; none if there is no such file, as on macOS.
    """
    try:
        with open(CPU_INFO, encoding="utf-8") as file:
            first, _, _ = file.read().partition("\n\n")
    except OSError:
        return []
    return [line for line in first.splitlines() if line.startswith(names)]


def num_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS


def check_not_forked(engine: str) -> None:
    """Checks that an engine works in this process; call it before using one.

    Args:
        engine: str. `TENSORFLOW` or `OPENVINO`.

    Raises:
        UserError: The engine was started before this process was forked.
    """
    if engine in _lost:
        raise UserError(
            f"{engine} was started before this process was forked, and its "
            "threads were lost",
            expected="a model that is loaded only after the fork",
            fix='use multiprocessing.get_context("spawn"), or gunicorn '
            "without --preload",
        )
    _started.add(engine)
