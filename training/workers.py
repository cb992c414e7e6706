"""This process as one of several: what is its own, and how it leaves.

A process belongs to one cluster for its life, as TensorFlow has it; what is
known of it stands here. In a process that trains alone nothing here does
anything.
"""

import atexit
import contextlib
import functools
import json
import os
import shutil
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator

import numpy as np

from common.errors import UserError
from common.progress import say
from training import cluster
from training.cluster import Cluster, WorkerLostError
from training.preemption import RUN_AGAIN

# Survivors stay so long that each can see whose port is closed.
_SECONDS_TO_LOOK_AROUND = 1.5
_SECONDS_TO_LEAVE = 10.0
_END = "end"
_DAY_IN_MS = 24 * 60 * 60 * 1000

_joined: Cluster | None = None
_stay_until = 0.0
_folders: tuple[str, str] | None = None  # the chief's, and this process's own


def own_folder(workers: Cluster, folder: str) -> str:
    """Where this process writes what only the chief is to write.

    Args:
        workers: whom it belongs to.
        folder: output_dir, or a folder in it.

    Returns:
        the folder itself, for the chief; else one that is thrown away.
    """
    global _folders
    if workers.is_chief or (_folders and folder.startswith(_folders[1])):
        return folder
    if _folders is None:
        _folders = (folder, tempfile.mkdtemp(prefix="worker-"))
    return _folders[1]


def chiefs_folder(folder: str) -> str:
    """Where the chief writes what this process has in `folder`."""
    if _folders and folder.startswith(_folders[1]):
        return _folders[0] + folder[len(_folders[1]) :]
    return folder


def join(workers: Cluster, timeout: float):
    """Makes this process one of the cluster.

    Args:
        workers: the cluster.
        timeout: seconds to wait for the others.

    Returns:
        `tf.distribute.MultiWorkerMirroredStrategy`.

    Raises:
        UserError, WorkerLostError: as of `cluster.meet`.
    """
    import tensorflow as tf

    global _joined
    cluster.meet(workers, timeout)
    _joined = workers

    def give_up():
        say("error: TensorFlow does not reach the workers that have come")
        os._exit(RUN_AGAIN)

    # A process that dies just now would be waited for without end.
    timer = threading.Timer(timeout, give_up)
    timer.start()
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    finally:
        timer.cancel()


def is_joined() -> bool:
    """Whether this process is one of several."""
    return _joined is not None


@contextlib.contextmanager
def watch() -> Iterator[None]:
    """Turns errors that a lost process causes into one that names it.

    Raises:
        WorkerLostError: another process is gone.
    """
    global _stay_until
    try:
        yield
    except Exception as error:
        lost = _lost(error) if _joined else None
        if lost is None:
            raise
        _stay_until = time.monotonic() + _SECONDS_TO_LOOK_AROUND
        notes = "".join(f" {x}" for x in getattr(error, "__notes__", ()))
        raise WorkerLostError(
            f"{lost} lost{notes}; start all workers again with the same command"
        ) from None


def leave(code: int) -> int:
    """Ends this process with the others, if it is one of several.

    The others wait until the chief has written everything; the chief, whom
    TensorFlow asks about the end, leaves last.

    Args:
        code: exit code.

    Returns:
        the code, in a process that is alone.
    """
    if _folders:
        shutil.rmtree(_folders[1])
    if _joined is None:
        return code
    if code == 0:
        code = _end_together()
    time.sleep(max(0.0, _stay_until - time.monotonic()))
    sys.stdout.flush()
    sys.stderr.flush()
    atexit._run_exitfuncs()  # TensorFlow's temporary files
    # The interpreter's way out would wait for processes that may be gone.
    os._exit(code)


def _end_together() -> int:
    """Waits for the end of all; returns the exit code."""
    from tensorflow import errors
    from tensorflow.python.eager import context  # has no public name

    try:
        context.context().wait_at_barrier(_END, _DAY_IN_MS)
    except errors.OpError as error:
        if _joined.is_chief:  # which has written everything
            return 0
        say(f"error: {_lost(error)} lost at the end; see its log")
        return RUN_AGAIN
    end = time.monotonic() + _SECONDS_TO_LEAVE
    while _joined.is_chief and time.monotonic() < end:
        if len(_joined.refusing()) == len(_joined.tasks) - 1:
            break
        time.sleep(0.05)
    return 0


def _lost(error: Exception) -> str | None:
    """Who is gone; None: the error has another cause."""
    from tensorflow import errors

    if not isinstance(error, errors.OpError):
        return None
    names = _joined.refusing() or _joined.named_in(str(error))
    if not names and "CoordinationService" in str(error):
        names = [_joined.describe(0)]  # where that service is
    if names:
        return ", ".join(names)
    unreachable = (
        errors.UnavailableError,
        errors.AbortedError,
        errors.CancelledError,
        errors.DeadlineExceededError,
    )
    return "another worker" if isinstance(error, unreachable) else None


def gather(strategy, *values: float) -> np.ndarray:
    """What each worker says.

    Args:
        strategy: of the run; only one of several workers asks anybody.
        values: what this process says, exact in float64.

    Returns:
        float64 [R, len(values)], R replicas; R = 1 in a single process.
    """
    import tensorflow as tf

    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return np.array([values], np.float64)
    said = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant([values], tf.float64)
    )
    return _gatherer(strategy)(said).numpy()


def all_reduce_max(strategy, number: int) -> int:
    """The largest number of all workers'."""
    return int(gather(strategy, number).max())


def all_reduce_min(strategy, number: int) -> int:
    """The smallest number of all workers'."""
    return int(gather(strategy, number).min())


def barrier(strategy) -> None:
    """Waits until every worker is here."""
    gather(strategy, 0)


def check_step(strategy, step: int, folder: str) -> None:
    """Refuses workers that start from different steps.

    Args:
        strategy: of the run.
        step: where this worker starts.
        folder: where it has looked for checkpoints.

    Raises:
        UserError: another worker is at another step.
    """
    steps = sorted({int(x) for x in gather(strategy, step)[:, 0]})
    if len(steps) > 1:
        raise UserError(
            f"workers are at the steps {', '.join(map(str, steps))}",
            path=folder,
            expected="the same checkpoints in --output_dir on all workers",
            fix="put it into a folder that they share",
        )


def check_settings(strategy, settings: dict[str, object]) -> None:
    """Refuses workers with different settings.

    Args:
        strategy: of the run.
        settings: name -> JSON value that decides what a step computes.

    Raises:
        UserError: another worker has another value; all raise it.
    """
    marks = [
        zlib.crc32(json.dumps(value, sort_keys=True).encode())
        for value in settings.values()
    ]
    said = gather(strategy, *marks).T
    differing = [
        name
        for name, column in zip(settings, said, strict=True)
        if len(set(column)) > 1
    ]
    if differing:
        raise UserError(
            f"workers differ in {', '.join(differing)}",
            expected="the same command and files on all of them",
        )


# A function is traced once for each strategy: a tenth of a second.
@functools.cache
def _gatherer(strategy):
    import tensorflow as tf

    return tf.function(lambda said: strategy.gather(said, axis=0))
