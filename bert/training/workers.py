"""This process as a worker of a distributed run.

This module holds the process's cluster. A process joins at most one, as
TensorFlow can only join once. In a single process all functions are no-ops.
"""

import atexit
import os
import sys
import time

from bert.common.progress import log
from bert.training import cluster
from bert.training.cluster import Cluster, WorkerLostError
from bert.training.preemption import RUN_AGAIN

# Processes wait before they end, so that others see which ports are closed.
_SECONDS_TO_LOOK_AROUND = 1.5
_SECONDS_TO_LEAVE = 10.0
_END = "end"
# TensorFlow's codes: cancelled, deadline exceeded, aborted, unavailable.
_UNREACHABLE = (1, 4, 10, 14)
_DAY_IN_MS = 24 * 60 * 60 * 1000

_joined: Cluster | None = None
_stay_until = 0.0


def join(processes: Cluster, timeout: float) -> None:
    """Adds this process to a cluster, before TensorFlow joins it.

    Args:
        processes: Cluster. Processes of the run.
        timeout: float. Seconds to wait for the other processes.

    Raises:
        UserError, WorkerLostError: see `cluster.meet`.
    """
    global _joined
    cluster.meet(processes, timeout)
    _joined = processes


def is_chief() -> bool:
    """Whether this process writes the files of the run."""
    return _joined is None or _joined.is_chief


def index_and_count() -> tuple[int, int]:
    """Index of this process, and the number of processes: (0, 1) for one."""
    return (_joined.index, len(_joined.tasks)) if _joined else (0, 1)


def explain(error: Exception) -> Exception:
    """Returns an error that names the lost process if that is the cause."""
    global _stay_until
    lost = _lost(error, _joined) if _joined else None
    if lost is None:
        return error

    _stay_until = time.monotonic() + _SECONDS_TO_LOOK_AROUND
    notes = "".join(f" {x}" for x in getattr(error, "__notes__", ()))
    return WorkerLostError(
        f"{lost} lost{notes}; start all workers again with the same command"
    )


def leave(code: int) -> int:
    """Ends this process together with the others, if there are several.

    The others wait until the chief has written everything. The chief, which
    runs TensorFlow's coordination service, leaves last.

    Args:
        code: int. Exit code.

    Returns:
        The exit code, in a single process.
    """
    if _joined is None:
        return code
    if code == 0:
        code = _end_together(_joined)

    time.sleep(max(0.0, _stay_until - time.monotonic()))
    sys.stdout.flush()
    sys.stderr.flush()
    atexit._run_exitfuncs()  # TensorFlow's temporary files
    # A normal exit would wait for processes that may be lost.
    os._exit(code)


def _end_together(processes: Cluster) -> int:
    """Waits until all workers have ended; returns the exit code."""
    from tensorflow import errors
    from tensorflow.python.eager import context  # has no public name

    try:
        context.context().wait_at_barrier(_END, _DAY_IN_MS)
    except errors.OpError as error:
        if processes.is_chief:  # it has written everything
            return 0
        log(f"error: {_lost(error, processes)} lost at the end; see its log")
        return RUN_AGAIN

    # The chief leaves when the ports of all others are closed.
    end = time.monotonic() + _SECONDS_TO_LEAVE
    while processes.is_chief and time.monotonic() < end:
        if len(processes.unreachable()) == len(processes.tasks) - 1:
            break
        time.sleep(0.05)
    return 0


def _lost(error: Exception, processes: Cluster) -> str | None:
    """Names of the lost workers; None: the error has another cause."""
    code = getattr(error, "error_code", None)  # TensorFlow's errors have one
    if code is None:
        return None

    names = processes.unreachable() or processes.named_in(str(error))
    if not names and "CoordinationService" in str(error):
        names = [processes.describe(0)]  # the chief runs that service

    if names:
        return ", ".join(names)

    return "another worker" if code in _UNREACHABLE else None
