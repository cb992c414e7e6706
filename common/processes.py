"""Work on several processes of this machine."""

import collections
import concurrent.futures
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

# TensorFlow's threads do not survive a fork.
SPAWN = multiprocessing.get_context("spawn")
AHEAD = 3  # items of a process, worked on and waiting

_work: Callable  # of a process in the pool


def map_in_order(
    make_worker: Callable[[], Callable],
    items: Iterable,
    num_processes: int,
    on_wait: Callable[[], None] = lambda: None,
) -> Iterator[Any]:
    """Computes a result from each item, in the order of the items.

    At most `AHEAD` items for each process are held at once.

    Args:
        make_worker: called once in each process; returns the function of an
            item. Both can be pickled.
        items: any number of them.
        num_processes: number of processes; 1 works in this process.
        on_wait: called about every second while processes work.

    Yields:
        the results.
    """
    if num_processes == 1:
        yield from map(make_worker(), items)
        return
    waiting = collections.deque()

    def next_result():
        while concurrent.futures.wait([waiting[0]], 1).not_done:
            on_wait()
        return waiting.popleft().result()

    with concurrent.futures.ProcessPoolExecutor(
        num_processes, SPAWN, _start, (make_worker,)
    ) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(_run, item))
                if len(waiting) == AHEAD * num_processes:
                    yield next_result()
            while waiting:
                yield next_result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _start(make_worker: Callable[[], Callable]) -> None:
    global _work
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends without a traceback
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # its errors are raised too
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # no memory of a GPU
    _work = make_worker()


def _end_with_parent() -> None:
    """Without it a killed run leaves its processes waiting forever."""
    multiprocessing.parent_process().join()
    os._exit(1)


def _run(item) -> Any:
    return _work(item)
