"""Operations on local files and on shared storage (`gs://`, `hdfs://`).

Paths with `://` use TensorFlow's file systems, which are imported only then.
"""

import glob as local_glob
import hashlib
import json
import os
import shutil
import sys

from common.errors import UserError


def is_remote(path: str) -> bool:
    """Returns whether a path is on shared storage."""
    return "://" in path


def open_file(path: str, mode: str):
    """Opens a file in a binary mode, `rb` or `wb`."""
    return _gfile().GFile(path, mode) if is_remote(path) else open(path, mode)


def errors() -> tuple[type[Exception], ...]:
    """Returns the errors that operations on files raise."""
    if "tensorflow" not in sys.modules:
        return (OSError,)
    return OSError, sys.modules["tensorflow"].errors.OpError


def exists(path: str) -> bool:
    """Returns whether a file or folder exists."""
    return _gfile().exists(path) if is_remote(path) else os.path.exists(path)


def is_folder(path: str) -> bool:
    """Returns whether a path is a folder."""
    return _gfile().isdir(path) if is_remote(path) else os.path.isdir(path)


def size(path: str) -> int:
    """Returns the size of a file in bytes."""
    if is_remote(path):
        return _gfile().stat(path).length
    return os.path.getsize(path)


def check_regular(path: str) -> None:
    """Rejects a pipe or device, which may have no end.

    Raises:
        UserError: the path is neither a file nor a folder nor missing.
    """
    if os.path.exists(path) and not (
        os.path.isfile(path) or os.path.isdir(path)
    ):
        raise UserError("is a pipe or device", path=path, expected="a file")


def version(path: str) -> tuple[int, int]:
    """Returns the size of a file in bytes, and when it changed, in ns."""
    if is_remote(path):
        found = _gfile().stat(path)
        return found.length, found.mtime_nsec
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def free_space(path: str) -> int | None:
    """Returns the free bytes at a path; None if they are unknown."""
    if is_remote(path):
        return None
    folder = os.path.abspath(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return shutil.disk_usage(folder).free


def describe_free_space(path: str) -> str:
    """Returns the free space at a path, as `, 12.3 MB free`, if known."""
    free = free_space(path)
    return "" if free is None else f", {free / 1e6:.1f} MB free"


def glob(pattern: str) -> list[str]:
    """Returns the sorted paths that match a pattern."""
    matches = _gfile() if is_remote(pattern) else local_glob
    return sorted(matches.glob(pattern))


def name_of(files: list[str]) -> str:
    """Formats files for a message: the first, and the number of others."""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{files[0]}{more}"


def make_folder(path: str) -> None:
    """Creates a folder and its missing parents."""
    if is_remote(path):
        _gfile().makedirs(path)
    else:
        os.makedirs(path, exist_ok=True)


def replace(source: str, target: str) -> None:
    """Renames a file; replaces a file of that name."""
    if is_remote(target):
        _gfile().rename(source, target, overwrite=True)
    else:
        os.replace(source, target)


def remove(path: str) -> None:
    """Removes a file."""
    (_gfile() if is_remote(path) else os).remove(path)


def remove_folder(path: str) -> None:
    """Removes a folder and its contents, if it exists."""
    if not is_folder(path):
        return
    if is_remote(path):
        _gfile().rmtree(path)
    else:
        shutil.rmtree(path)


def absolute(path: str) -> str:
    """Returns the absolute path of a local path."""
    return path if is_remote(path) else os.path.abspath(path)


def _gfile():
    import tensorflow as tf

    return tf.io.gfile


def list_files(patterns: str, flag: str) -> list[str]:
    """Lists the files of comma-separated paths and globs.

    Args:
        patterns: value of the flag; the files of a glob are sorted.
        flag: name of the flag, for the message.

    Returns:
        paths of the files.

    Raises:
        UserError: a pattern matches no file, or a folder.
    """
    files = []
    for pattern in patterns.split(","):
        # A name may look like a glob.
        matches = [pattern] if exists(pattern) else glob(pattern)
        if not matches:
            raise UserError(
                f"--{flag}={pattern!r} matches no file",
                fix="check the path; a comma separates several",
            )
        for match in matches:
            if is_folder(match):
                raise UserError(
                    f"--{flag} is a folder",
                    path=match,
                    expected="files",
                    fix=f"pass --{flag}='{match}/*'",
                )
        files += matches
    return files


def check_output_file(path: str, flag: str) -> None:
    """Rejects a path that cannot become a file.

    Raises:
        UserError: the path is a folder, or in a folder that does not exist.
    """
    folder = os.path.dirname(os.path.abspath(path))
    if not path or os.path.isdir(path):
        raise UserError(f"--{flag}={path!r}", expected="the name of a file")
    if not os.path.isdir(folder):
        raise UserError(
            f"--{flag}={path!r}",
            expected=f"a folder {folder}",
            fix="create the folder first",
        )


def sync_and_hash(path: str) -> str:
    """Flushes a file to disk; returns its sha256 as hexadecimal digits."""
    digest = hashlib.sha256()
    with open_file(path, "rb") as file:
        if not is_remote(path):
            os.fsync(file.fileno())
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def sync_folder(path: str) -> None:
    """Flushes the names of the files of a folder to disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_whole(
    path: str, content: str | bytes, suffix: str = "partial"
) -> None:
    """Writes a file atomically: under a temporary name, then renames it.

    Args:
        path: the file; an existing one is replaced.
        content: bytes, or text to write as UTF-8.
        suffix: end of the temporary name; if several processes write the file
            at once, each needs its own.
    """
    if isinstance(content, str):
        content = content.encode()
    temporary = f"{path}.{suffix}"
    with open_file(temporary, "wb") as file:
        file.write(content)
        file.flush()
        if not is_remote(path):
            os.fsync(file.fileno())
    replace(temporary, path)


def to_json(value, **options) -> str:
    """Encodes a value as strict JSON: RFC 8259 has no NaN.

    Args:
        value: value to encode; numbers that are not finite become null.
        **options: arguments of `json.dumps`.

    Returns:
        the text.
    """
    try:
        return json.dumps(value, allow_nan=False, **options)
    except ValueError:
        finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
        return json.dumps(finite, **options)
