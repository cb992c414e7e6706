"""Checks of the output paths of scripts, and copies of folders."""

import contextlib
import errno
import os
from collections.abc import Iterable

from bert.common import atomic, storage
from bert.common.errors import UserError


def is_impossible(path: str) -> bool:
    """Returns whether a path cannot become a file: "", a folder, a device."""
    return not path or storage.exists(path) and not storage.is_file(path)


def check_writable(path: str) -> None:
    """Rejects a local file or folder that cannot be written or created.

    Raises:
        UserError: The path is below a file, a name is too long, or the
            nearest existing folder has no write permission.
    """
    if storage.is_remote(path):
        return
    try:
        with contextlib.suppress(FileNotFoundError):
            storage.version(path)  # raises other errors of the path
        folder = os.path.abspath(path)
        while not storage.is_folder(folder):  # files are replaced
            folder = os.path.dirname(folder)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise atomic.write_error(path, error) or error from None


def check_file(path: str, flag: str) -> None:
    """Rejects a path that cannot become a file.

    Raises:
        UserError: The path is a folder or a device, its folder does not
            exist, or it cannot be written.
    """
    if is_impossible(path):
        raise UserError(f"--{flag}={path!r}", expected="the name of a file")
    folder = parent(path)
    # An object store has no folders.
    if not storage.is_remote(path) and not storage.is_folder(folder):
        raise UserError(
            f"--{flag}={path!r}",
            expected=f"a folder {folder}",
            fix="create the folder first",
        )
    check_writable(path)


def check_new_folder(folder: str, fix: str) -> None:
    """Rejects an output folder that is not empty or cannot be written.

    Raises:
        UserError: The folder is not empty or cannot be written, or the path
            is a file.
    """
    check_writable(folder)
    # A killed process may have left unfinished files.
    names = set(storage.list_folder(folder)) - {atomic.UNFINISHED}
    if names or storage.exists(folder) and not storage.is_folder(folder):
        raise UserError(
            "already exists",
            path=folder,
            expected="a new or empty folder",
            fix=fix,
        )


def parent(path: str) -> str:
    """Returns the folder of a file; the parent of a bucket is the bucket."""
    folder = os.path.dirname(storage.absolute(path).rstrip("/"))
    return path if folder.endswith(":") else folder or "/"


def check_no_input(outputs: Iterable[str], inputs: Iterable[str]) -> None:
    """Rejects outputs that are inputs too.

    Raises:
        UserError: A file is both input and output.
    """
    # Two paths may be the same file.
    written = set(map(os.path.realpath, outputs))
    for path in inputs:
        if os.path.realpath(path) in written:
            raise UserError(
                "is both input and output",
                path=path,
                fix="write to another folder",
            )


def copy_folder(source: str, target: str) -> None:
    """Copies a folder and all folders below it.

    Args:
        source: str. The folder to copy.
        target: str. The new folder, which is created if it does not exist.
    """
    storage.make_folder(target)
    for path in storage.files_below(source):
        inside = path[len(source.rstrip("/")) + 1 :]
        copied = os.path.join(target, inside)
        storage.make_folder(os.path.dirname(copied))
        storage.copy(path, copied)
