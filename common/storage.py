"""Files here or on shared storage (`gs://`, `hdfs://`), by their path.

A path with `://` goes through TensorFlow's file systems, which are imported
only then.
"""

import glob as local_glob
import hashlib
import json
import os
import shutil

from common.errors import UserError


def is_remote(path: str) -> bool:
    """Whether a path names another file system than this machine's."""
    return "://" in path


def open_file(path: str, mode: str):
    """Opens a file in a binary mode, `rb` or `wb`."""
    return _gfile().GFile(path, mode) if is_remote(path) else open(path, mode)


def exists(path: str) -> bool:
    """Whether there is such a file or folder."""
    return _gfile().exists(path) if is_remote(path) else os.path.exists(path)


def is_folder(path: str) -> bool:
    """Whether there is such a folder."""
    return _gfile().isdir(path) if is_remote(path) else os.path.isdir(path)


def size(path: str) -> int:
    """Bytes of a file."""
    if is_remote(path):
        return _gfile().stat(path).length
    return os.path.getsize(path)


def describe_free_space(path: str) -> str:
    """The space left where a path is, as `, 12.3 MB free`, if it is known."""
    if is_remote(path):
        return ""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    return f", {shutil.disk_usage(folder).free / 1e6:.1f} MB free"


def glob(pattern: str) -> list[str]:
    """Sorted paths that match a pattern."""
    matches = _gfile() if is_remote(pattern) else local_glob
    return sorted(matches.glob(pattern))


def name_of(files: list[str]) -> str:
    """Files in a message: the first, and how many more."""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{files[0]}{more}"


def make_folder(path: str) -> None:
    """Makes a folder and those above it."""
    if is_remote(path):
        _gfile().makedirs(path)
    else:
        os.makedirs(path, exist_ok=True)


def replace(source: str, target: str) -> None:
    """Gives a file another name, over a file that has it."""
    if is_remote(target):
        _gfile().rename(source, target, overwrite=True)
    else:
        os.replace(source, target)


def copy(source: str, folder: str) -> str:
    """Copies a file of this machine to shared storage.

    Returns:
        the copy's path, `folder` and the file's own name.
    """
    target = f"{folder}/{os.path.basename(source)}"
    _gfile().copy(source, target)
    return target


def remove_folder(path: str) -> None:
    """Removes a folder with all that is in it, if it is there."""
    if not is_folder(path):
        return
    if is_remote(path):
        _gfile().rmtree(path)
    else:
        shutil.rmtree(path)


def absolute(path: str) -> str:
    """The path, independent of the present folder."""
    return path if is_remote(path) else os.path.abspath(path)


def _gfile():
    import tensorflow as tf

    return tf.io.gfile


def list_files(patterns: str, flag: str) -> list[str]:
    """Files of a comma-separated list of paths and globs.

    Args:
        patterns: what the user passed; a glob's files are sorted.
        flag: name of the flag, for the message.

    Raises:
        UserError: a pattern matches no file, or a folder.
    """
    files = []
    for pattern in patterns.split(","):
        # Its name may look like a glob.
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
    """Refuses a path that cannot become a file, before any work is done.

    Raises:
        UserError: it is a folder, or in a folder that does not exist.
    """
    folder = os.path.dirname(os.path.abspath(path))
    if not path or os.path.isdir(path):
        raise UserError(f"--{flag}={path!r}", expected="the name of a file")
    if not os.path.isdir(folder):
        raise UserError(
            f"--{flag}={path!r}",
            expected=f"a folder {folder}",
            fix="make the folder first",
        )


def sync_and_hash(path: str) -> str:
    """Forces a file to the disk; returns its sha256 as hexadecimal digits."""
    digest = hashlib.sha256()
    with open_file(path, "rb") as file:
        if not is_remote(path):
            os.fsync(file.fileno())
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def sync_folder(path: str) -> None:
    """Forces the names of a folder's files to the disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_whole(path: str, content: str | bytes) -> None:
    """Writes a file under a temporary name, then gives it its own.

    Args:
        path: the file; one that is there is replaced.
        content: text is written as UTF-8.
    """
    if isinstance(content, str):
        content = content.encode()
    temporary = f"{path}.partial"
    with open_file(temporary, "wb") as file:
        file.write(content)
        file.flush()
        if not is_remote(path):
            os.fsync(file.fileno())
    replace(temporary, path)


def to_json(value, **options) -> str:
    """Encodes a value as JSON that every parser reads: RFC 8259 has no NaN.

    Args:
        value: numbers in it that are not finite become null.
        **options: of `json.dumps`.

    Returns:
        the text.
    """
    try:
        return json.dumps(value, allow_nan=False, **options)
    except ValueError:
        finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
        return json.dumps(finite, **options)
