"""Files and folders that appear complete or not at all.

They are written under another name, synced and renamed; on shared storage,
which has no rename, they are written to a local disk and copied.
"""

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator

from bert.common import storage
from bert.common.errors import StorageError, UserError

UNFINISHED = ".partial"  # folder of files that are not complete


def write_whole(
    path: str, content: str | bytes, suffix: str = "partial"
) -> None:
    """Writes a file atomically.

    Args:
        path: the file; an existing one is replaced.
        content: bytes, or text to write as UTF-8.
        suffix: as for `whole_file`.

    Raises:
        UserError: the file cannot be written.
    """
    if isinstance(content, str):
        content = content.encode()
    with whole_file(path, suffix) as temporary, open(temporary, "wb") as file:
        file.write(content)


@contextlib.contextmanager
def whole_file(path: str, suffix: str = "partial") -> Iterator[str]:
    """Context with a temporary file, which gets its name at the end.

    It is synced and renamed, or copied to shared storage; after an error it is
    removed.

    Args:
        path: the file; an existing one is replaced.
        suffix: end of the temporary name; if several processes write the file
            at once, each needs its own.

    Yields:
        local path of the temporary file, to be written in the context.

    Raises:
        UserError: the file cannot be written.
    """
    folder, name = os.path.split(path)
    temporary = scratch(folder, f"{name}.{suffix}")

    try:
        yield temporary

        # Else a crash after the rename could leave an empty file.
        sync(temporary)
        storage.replace(temporary, path)
    except Exception as error:
        raise write_error(path, error, temporary) or error from None
    finally:
        with contextlib.suppress(OSError):
            os.remove(temporary)


@contextlib.contextmanager
def whole_folder(folder: str, last: str = "") -> Iterator[str]:
    """Context with a temporary folder, whose files move to a folder at its end.

    A new local folder appears with all its files at once; otherwise they
    appear one after another, `last` after all others. After an error nothing
    is left.

    Args:
        folder: the folder; its files of the same names are replaced.
        last: name of the file that makes the others count.

    Yields:
        path of an empty local folder.

    Raises:
        UserError: the folder cannot be written.
    """
    folder = folder.rstrip("/")
    is_new = not storage.exists(folder)
    if is_new and not storage.is_remote(folder):
        temporary = f"{folder}.partial"
    else:
        temporary = scratch(folder, UNFINISHED)

    try:
        storage.remove_folder(temporary)  # of a killed process
        storage.make_folder(temporary)
        yield temporary

        # The last file makes the others count, so it moves behind them.
        files = storage.files_below(temporary)
        files.sort(key=lambda path: os.path.basename(path) == last)
        for path in files:
            sync(path)

        # One rename shows all files at once.
        if is_new and not storage.is_remote(folder):
            os.replace(temporary, folder)
            return

        # Else one by one: into a folder with files, or on a store.
        for path in files:
            target = os.path.join(folder, os.path.relpath(path, temporary))
            storage.make_folder(os.path.dirname(target))
            storage.replace(path, target)
        if not storage.is_remote(folder):
            sync(folder)
    except Exception as error:
        raise write_error(folder, error, temporary) or error from None
    finally:
        storage.remove_folder(temporary)


def scratch(folder: str, name: str) -> str:
    """Returns a local path for what belongs in a folder when it is complete.

    It is in the folder itself, so that a file is renamed on its own disk; if
    that is on shared storage, in the folder of temporary files.

    Args:
        folder: the folder.
        name: of the unfinished file or folder.
    """
    if not storage.is_remote(folder):
        return os.path.join(folder, name)
    digest = hashlib.sha256(folder.rstrip("/").encode()).hexdigest()[:8]
    return os.path.join(
        tempfile.gettempdir(), f"bert-{os.getuid()}-{digest}-{name}"
    )


def sync(path: str) -> None:
    """Flushes a local file, or the names in a local folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_error(
    path: str, error: Exception, temporary: str = ""
) -> UserError | StorageError | None:
    """Converts an error of a write; returns None for errors of another kind.

    Args:
        path: the file or folder, for the message.
        error: of the system or of TensorFlow.
        temporary: name under which the file is written.
    """
    # An error about another file is not of this write.
    names = tuple(filter(None, (path, temporary)))
    if isinstance(error, OSError):
        if error.filename and not str(error.filename).startswith(names):
            return None
        cause = error.strerror or str(error)
    elif storage.as_storage_error(error):
        return storage.as_storage_error(error)
    else:
        cause = getattr(error, "message", "")  # of TensorFlow
        if not any(name in cause for name in names):
            return None

    return UserError(
        f"cannot be written: {cause}{_free_space(path)}",
        path=path,
        fix="check the path, its permissions and the free space",
    )


def _free_space(path: str) -> str:
    """Returns the free space at a path, as `, 12.3 MB free`, if known."""
    if storage.is_remote(path):
        return ""

    # The folder itself may not exist yet.
    folder = os.path.abspath(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return f", {shutil.disk_usage(folder).free / 1e6:.1f} MB free"
