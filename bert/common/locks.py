"""Locks of files, which end with the process that holds them."""

import contextlib
import datetime
import os
import socket
from collections.abc import Iterator

import filelock

from bert.common.errors import UserError


@contextlib.contextmanager
def hold(path: str, what: str) -> Iterator[None]:
    """Holds a lock.

    Args:
        path: local file of the lock, which is created and removed.
        what: the path that the lock protects, for the message.

    Raises:
        UserError: another process holds the lock; the message says which.
    """
    lock = filelock.FileLock(path, timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout:
        with open(path, errors="replace") as file:
            owner = file.read(200).strip() or "another process"
        raise UserError(
            f"in use by {owner}",
            path=what,
            fix="wait until it has finished, or choose another output",
        ) from None

    # The file names its holder, for whoever comes next.
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
