"""Operations on local files and on shared storage (`gs://`).

All paths from flags are opened, listed, written and removed with this module.
Paths with `://` use TensorFlow's file systems, which are imported only then.
An object store has no folders and no rename. A file appears complete when it is
closed; in a set of files, the file written last marks the set as complete.
"""

import errno
import fnmatch
import functools
import glob as local_glob
import hashlib
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator

from bert.common.errors import StorageError, UserError

_CHUNK = 1 << 20


def is_remote(path: str) -> bool:
    """Returns whether a path is on shared storage; http(s) URLs are not."""
    path = os.fspath(path)
    return "://" in path and not path.startswith(("http://", "https://"))


def open_file(path: str, mode: str):
    """Opens a file in a binary mode: `rb`, `wb` or `ab`.

    Raises:
        UserError: A local path to read is a pipe or device.
    """
    if is_remote(path):
        return _remote().open_file(path, mode)
    return open(regular(path) if mode == "rb" else path, mode)


def open_text(path: str, mode: str = "r", **options):
    """Opens a UTF-8 text file.

    Args:
        path: str. The file.
        mode: str. `r`, `w` or `a`. Default: `r`.
        **options: `errors` and `newline`, as for `open`.
    """
    file = open_file(path, f"{mode}b")
    return io.TextIOWrapper(file, encoding="utf-8", **options)


def as_storage_error(error: Exception) -> StorageError | None:
    """Converts an error of TensorFlow that shared storage caused, or None."""
    # Before TensorFlow is imported, it cannot be one of its errors.
    if not sys.modules.get("tensorflow"):
        return None
    return _remote().as_storage_error(error)


def as_user_error(error: BaseException) -> UserError | None:
    """Converts an `OSError` about a file; returns None for other errors.

    An error without a file name is converted only if the disk is full.
    """
    if not isinstance(error, OSError) or not (
        error.filename or error.errno in (errno.ENOSPC, errno.EDQUOT)
    ):
        return None
    return UserError(
        f"cannot be read or written: {error.strerror}",
        path=error.filename,
        fix="check that its folder is still there, its permissions and the "
        "free space",
    )


def exists(path: str) -> bool:
    """Returns whether a file, folder or (possibly broken) link exists."""
    return _either(path, os.path.lexists, "exists")


def is_file(path: str) -> bool:
    """Returns whether a path is a file."""
    if not is_remote(path):
        return os.path.isfile(path)
    return exists(path) and not is_folder(path)


def is_folder(path: str) -> bool:
    """Returns whether a path is a folder."""
    return _either(path, os.path.isdir, "isdir")


def size(path: str) -> int:
    """Returns the size of a file in bytes."""
    return version(path)[0]


def regular(path: str) -> str:
    """Returns the path unless it is a pipe or device, which may have no end.

    Raises:
        UserError: The path is a pipe or device.
    """
    if os.path.exists(path) and not (
        os.path.isfile(path) or os.path.isdir(path)
    ):
        raise UserError("is a pipe or device", path=path, expected="a file")
    return path


def version(path: str) -> tuple[int, int]:
    """Returns a file's size in bytes and its modification time in ns."""
    if is_remote(path):
        with _remote().files(path) as gfile:
            found = gfile.stat(path)
        return found.length, found.mtime_nsec
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def glob(pattern: str) -> list[str]:
    """Returns the sorted paths that match a pattern."""
    local = functools.partial(local_glob.glob, recursive=True)
    return sorted(_either(pattern, local, "glob"))


def list_folder(folder: str) -> list[str]:
    """Returns the sorted names in a folder; [] if it does not exist."""
    try:
        names = _either(folder, os.listdir, "listdir")
    except (FileNotFoundError, NotADirectoryError):
        return []

    # TensorFlow lists folders with a trailing slash.
    return sorted({name.rstrip("/") for name in names} - {""})


def find(folder: str, pattern: str) -> list[str]:
    """Returns the sorted paths in a folder whose names match a pattern."""
    names = fnmatch.filter(list_folder(folder), pattern)
    return [os.path.join(folder, name) for name in names]


def any_starts_with(prefix: str) -> bool:
    """Returns whether a file or folder has a path with this prefix."""
    folder, start = os.path.split(prefix.rstrip("/"))
    return is_folder(prefix) or any(
        x.startswith(start) for x in list_folder(folder or ".")
    )


def walk(folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yields (path, folder names, file names) like `os.walk`."""
    if not is_remote(folder):
        yield from os.walk(folder)
        return
    with _remote().files(folder) as gfile:
        yield from gfile.walk(folder)


def files_below(folder: str) -> list[str]:
    """Returns the sorted paths of all files below a folder."""
    return sorted(
        os.path.join(where, name)
        for where, _, names in walk(folder)
        for name in names
    )


def make_folder(path: str) -> None:
    """Creates a folder and its missing parents."""
    _either(path, functools.partial(os.makedirs, exist_ok=True), "makedirs")


def replace(source: str, target: str) -> None:
    """Renames a file, or moves a local file to shared storage.

    An existing file is replaced.
    """
    if not is_remote(target):
        os.replace(source, target)
        return

    # A copy may be incomplete, so the sizes are compared.
    if not is_remote(source):
        copy(source, target)
        if size(target) != os.path.getsize(source):
            raise StorageError(f"{target}: not written completely")
        os.remove(source)
        return
    with _remote().files(target) as gfile:
        gfile.rename(source, target, overwrite=True)


def copy(source: str, target: str) -> None:
    """Copies the content of a file; an existing file is replaced."""
    if not is_remote(source) and not is_remote(target):
        shutil.copyfile(source, target)
        return
    with open_file(source, "rb") as read, open_file(target, "wb") as written:
        shutil.copyfileobj(read, written, _CHUNK)


def remove(path: str) -> None:
    """Removes a file."""
    _either(path, os.remove, "remove")


def remove_folder(path: str) -> None:
    """Removes a folder and its contents, if it exists."""
    if is_folder(path):
        _either(path, shutil.rmtree, "rmtree")


def absolute(path: str) -> str:
    """Returns the absolute path; remote paths are returned unchanged."""
    return path if is_remote(path) else os.path.abspath(path)


def is_inside(path: str, folder: str) -> bool:
    """Returns whether a path is a folder, or in it; links are not followed."""
    inside = f"{absolute(path).rstrip('/')}/"
    return inside.startswith(f"{absolute(folder).rstrip('/')}/")


def _either(path: str, local: Callable, name: str):
    """Calls `local` for a local path, else a function of `tf.io.gfile`."""
    if not is_remote(path):
        return local(path)
    with _remote().files(path) as gfile:
        return getattr(gfile, name)(path)


def _remote():
    from bert.common import remote_files

    return remote_files


def list_files(patterns: str, flag: str) -> list[str]:
    """Lists the files of comma-separated paths and globs.

    Args:
        patterns: str. Value of the flag; the files of a glob are sorted.
        flag: str. Name of the flag, for the message.

    Returns:
        list of str. Paths of the files.

    Raises:
        UserError: A pattern matches no file or matches a folder.
    """
    files = []
    for pattern in patterns.split(","):
        # A file name may look like a glob.
        matches = [pattern] if exists(pattern) else glob(pattern)

        if not matches:
            raise UserError(
                f"--{flag}={pattern!r} matches no file",
                fix="check the path; a comma separates several",
            )

        for match in matches:
            # Checking each of a thousand remote shards would take minutes.
            is_asked = match == pattern or not is_remote(match)
            if is_asked and is_folder(match):
                raise UserError(
                    f"--{flag} is a folder",
                    path=match,
                    expected="files",
                    fix=f"pass --{flag}='{match}/*'; "
                    "prepare_corpus.py reads the text files of whole folders",
                )

        files += matches
    return files


def hash_file(path: str) -> str:
    """Returns the sha256 of a file in hex."""
    with open_file(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def update_hash(sha256, file) -> None:
    """Updates a hash with all bytes of an open file; rewinds the file."""
    file.seek(0)
    hashlib.file_digest(file, lambda: sha256)
    file.seek(0)
