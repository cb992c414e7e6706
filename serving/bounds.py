"""Bounds of time and memory for a SavedModel, whose graph may have none."""

import contextlib
import os
import resource
import threading
from collections.abc import Iterator

from common.errors import UserError


def limit_memory() -> None:
    """Limits this process to the memory of the machine.

    An operation that asks for more gets an error; else Linux would grant it,
    and later end some process.
    """
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or soft > whole:
        if hard != resource.RLIM_INFINITY:
            whole = min(whole, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (whole, hard))


@contextlib.contextmanager
def deadline(seconds: float, path: str) -> Iterator[None]:
    """Context that ends the process with code 2 if it takes too long.

    A running graph cannot be interrupted.

    Args:
        seconds: the time; 0: unlimited.
        path: of the model, for the message.
    """
    if not seconds:
        yield
        return
    errors = os.dup(2)  # TensorFlow's log may be held back meanwhile
    timer = threading.Timer(seconds, _end, (seconds, path, errors))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        os.close(errors)


def _end(seconds: float, path: str, errors: int) -> None:
    error = UserError(
        f"no result after {seconds:g} seconds",
        path=path,
        fix="if the model needs longer, pass a longer --timeout, or 0",
    )
    os.write(errors, f"error: {error}\n".encode())
    os._exit(UserError.exit_code)
