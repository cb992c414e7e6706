"""Atomic writes of files and folders.

They are written under a temporary name, synced and renamed. Shared storage has
no rename, so files for it are written to the local disk and copied.
"""

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

from bert.common import storage
from bert.common.errors import StorageError, UserError

UNFINISHED = ".partial"  # folder of incomplete files
# Parts of TensorFlow's messages that name one of its operations.
_OPERATION = re.compile(r"^\{\{function_node .*?\}\} | \[Op:\w+\].*$")


def write_whole(
    path: str, content: str | bytes, is_shared: bool = False
) -> None:
    """Writes a file atomically.

    Args:
        path: str. The file; an existing file is replaced.
        content: str or bytes. A str is written as UTF-8.
        is_shared: bool. Whether several processes may write the file at once.
            Then each has a temporary file of its own. Default: False.

    Raises:
        UserError: the file cannot be written.
    """
    if isinstance(content, str):
        content = content.encode()
    suffix = "partial"
    if is_shared:
        suffix = f"{secrets.token_hex(8)}.partial"
    with open_whole(path, suffix) as file:
        file.write(content)


@contextlib.contextmanager
def open_whole(path: str, suffix: str = "partial") -> Iterator[BinaryIO]:
    """Context manager that opens a file, which appears at the end.

    Args:
        path, suffix: see `whole_file`.

    Yields:
        binary file.

    Raises:
        UserError: the file cannot be written.
    """
    with whole_file(path, suffix) as temporary, open(temporary, "wb") as file:
        yield file


@contextlib.contextmanager
def whole_file(path: str, suffix: str = "partial") -> Iterator[str]:
    """Context manager that writes a file under a temporary name.

    At the end the file is synced and renamed, or copied to shared storage.
    After an error it is removed.

    Args:
        path: str. The file; an existing file is replaced.
        suffix: str. End of the temporary name. Processes that write the same
            file at once need different suffixes. Default: "partial".

    Yields:
        str. Local path of the temporary file, which the caller writes.

    Raises:
        UserError: the file cannot be written.
    """
    folder, name = os.path.split(path)
    temporary = scratch(folder, f"{name}.{suffix}")

    try:
        yield temporary

        # Without a sync, a crash after the rename could leave an empty file.
        sync(temporary)
        storage.replace(temporary, path)
    except Exception as error:
        raise write_error(path, error, temporary) or error from None
    finally:
        with contextlib.suppress(OSError):
            os.remove(temporary)


@contextlib.contextmanager
def whole_folder(folder: str, last: str = "") -> Iterator[str]:
    """Context manager that writes the files of a folder in a temporary folder.

    At the end the files are moved. A new local folder appears with all its
    files at once. In other folders the files appear one after another, `last`
    after all others. After an error the temporary folder is removed.

    Args:
        folder: str. The folder; existing files of the same names are replaced.
        last: str. Name of the file that marks the others as complete.

    Yields:
        str. Path of an empty local folder.

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
        storage.remove_folder(temporary)  # left by a killed process
        storage.make_folder(temporary)
        yield temporary

        # `last` marks the other files as complete, so it is moved after them.
        files = storage.files_below(temporary)
        files.sort(key=lambda path: os.path.basename(path) == last)
        for path in files:
            sync(path)

        # With one rename, all files appear at once.
        if is_new and not storage.is_remote(folder):
            os.replace(temporary, folder)
            return

        # One by one into an existing folder, or on shared storage.
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
    """Returns the local path of an unfinished file or folder.

    The path is in the target folder, so that renaming stays on one disk. For
    shared storage it is in the local folder of temporary files.

    Args:
        folder: str. The target folder.
        name: str. Name of the unfinished file or folder.
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
        path: str. The file or folder, for the message.
        error: Exception. Error of the system or of TensorFlow.
        temporary: str. Temporary name under which the file is written.
    """
    # An error about another file has another cause.
    names = tuple(filter(None, (path, temporary)))
    if isinstance(error, OSError):
        if error.filename and not str(error.filename).startswith(names):
            return None
        cause = error.strerror or str(error)
    elif storage.as_storage_error(error):
        return storage.as_storage_error(error)
    else:
        cause = getattr(error, "message", "")  # errors of TensorFlow have it
        if not any(name in cause for name in names):
            return None
        cause = _OPERATION.sub("", cause)

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
