"""File locks, which are released when the process that holds them ends."""

import contextlib
import datetime
import os
import socket
from collections.abc import Iterator

import filelock

from bert.common.errors import UserError


@contextlib.contextmanager
def hold(path: str, shown: str) -> Iterator[None]:
    """Context manager that holds a lock.

    Args:
        path: str. Local lock file, which is created and removed.
        shown: str. The path that the lock protects, for the message.

    Raises:
        UserError: Another process, named in the message, holds the lock.
    """
    lock = filelock.FileLock(path, timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout:
        with open(path, errors="replace") as file:
            owner = file.read(200).strip() or "another process"
        raise UserError(
            f"in use by {owner}",
            path=shown,
            fix="wait until it has finished, or choose another output",
        ) from None

    # The holder is written to the file for the message above.
    try:
        now = f"{datetime.datetime.now():%Y-%m-%d %H:%M:%S}"
        owner = f"process {os.getpid()} on {socket.gethostname()} since {now}"
        with open(path, "w") as file:
            file.write(f"{owner}\n")
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)
        lock.release()
