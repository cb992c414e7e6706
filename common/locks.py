"""Locks of files, which end with the process that holds them."""

import contextlib
import datetime
import fcntl
import os
import socket
from collections.abc import Iterator

from common.errors import UserError


@contextlib.contextmanager
def hold(path: str, what: str) -> Iterator[None]:
    """Holds a lock.

    Where the file system has no locks, nothing is held.

    Args:
        path: local file of the lock, which is created and removed.
        what: the path that the lock protects, for the message.

    Raises:
        UserError: another process holds the lock; the message says which.
    """
    file = _locked(path, what)
    try:
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        file.close()


def _locked(path: str, what: str):
    while True:
        # Open while it is held.
        file = open(path, "a+", errors="replace")  # noqa: SIM115
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read(200).strip() or "another process"
            file.close()
            raise UserError(
                f"in use by {owner}",
                path=what,
                fix="wait until it has finished, or choose another output",
            ) from None
        except OSError:  # no locks here
            return file
        try:
            is_current = os.path.samestat(
                os.stat(path), os.fstat(file.fileno())
            )
        except FileNotFoundError:
            is_current = False
        if is_current:
            now = datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S")
            file.truncate(0)
            file.write(
                f"process {os.getpid()} on {socket.gethostname()} since {now}\n"
            )
            file.flush()
            return file
        file.close()  # its holder has removed it meanwhile
