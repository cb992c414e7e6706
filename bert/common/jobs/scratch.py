"""Folders of unfinished files: parts of the outputs, until all are complete."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator

from bert.common import atomic, storage
from bert.common.errors import StorageError
from bert.common.jobs import locks
from bert.common.processes import KilledProcess
from bert.common.progress import log

# Errors after which the same command may succeed.
STOPPED = KeyboardInterrupt, KilledProcess, StorageError


def folder_of(
    folder: str, names: list[str], identity: str, is_shared: bool = False
) -> str:
    """Returns the hidden folder of a job's unfinished files.

    Args:
        folder: str. The folder of the outputs.
        names: list of str. Names of the outputs, see `claim`.
        identity: str. Describes everything that the files depend on.
        is_shared: bool. Whether other machines write to it. True: the folder
            is beside the outputs. False: for outputs on shared storage, it is
            a local temporary folder. Default: False.
    """
    listed = json.dumps(sorted(names))
    name = f".partial-{_hash(listed)[:8]}-{_hash(identity)[:12]}"
    return f"{folder}/{name}" if is_shared else atomic.scratch(folder, name)


@contextlib.contextmanager
def claim(
    folder: str,
    names: list[str],
    scratch: str,
    kept_after: tuple[type[BaseException], ...] = STOPPED,
) -> Iterator[None]:
    """Context manager that locks outputs, so that only one run writes them.

    A killed run leaves its unfinished files. The same command continues with
    them; another run with the same outputs removes them.

    Args:
        folder: str. The folder of the outputs, which is created.
        names: list of str. Names of the outputs.
        scratch: str. The folder of unfinished files from `folder_of`.
        kept_after: tuple of types. Exceptions after which finished partitions
            are kept. Default: `STOPPED`.

    Raises:
        UserError: A folder cannot be written, or another process writes the
            same outputs.
    """
    is_new, kept = not storage.exists(folder), []
    try:
        with contextlib.ExitStack() as held:
            try:
                storage.make_folder(folder)
                for name in sorted(names):
                    lock = atomic.scratch(folder, f".{name}.lock")
                    held.enter_context(locks.hold(lock, f"{folder}/{name}"))

                # With the locks held, other folders belong to killed runs.
                beside, name = os.path.split(scratch)
                runs = storage.find(beside, f"{name.rpartition('-')[0]}-*")
                for other in set(runs) - {scratch}:
                    storage.remove_folder(other)
                storage.make_folder(scratch)
            except OSError as error:
                raise atomic.write_error(folder, error) or error from None

            try:
                yield
            except kept_after:
                if kept := storage.find(scratch, "part-*.json"):
                    log(
                        f"{len(kept)} finished partitions are kept in "
                        f"{scratch}; the same command continues"
                    )
                raise
            finally:
                if not kept:
                    _remove(scratch)
    finally:
        if is_new:
            with contextlib.suppress(OSError):  # if it is not empty
                os.rmdir(folder)


def _remove(scratch: str) -> None:
    """Removes a folder of unfinished files, all at once where that is possible.

    A process that is killed while it removes files must not leave a mark of a
    part whose file is gone. The new name belongs to another run.
    """
    removed = f"{scratch}-removed"
    if storage.is_remote(scratch):  # without a rename: marks first
        for path in storage.find(scratch, "part-*.json"):
            storage.remove(path)
    elif storage.exists(scratch):
        storage.remove_folder(removed)
        storage.replace(scratch, removed)
    storage.remove_folder(scratch)
    storage.remove_folder(removed)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
