"""Files that appear whole or not at all, also when the power fails."""

import hashlib
import json
import os

from common import storage


def sync_and_hash(path: str) -> str:
    """Forces a file to the disk; returns its sha256 as hexadecimal digits."""
    digest = hashlib.sha256()
    with storage.open_file(path, "rb") as file:
        if not storage.is_remote(path):
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
    with storage.open_file(temporary, "wb") as file:
        file.write(content)
        file.flush()
        if not storage.is_remote(path):
            os.fsync(file.fileno())
    storage.replace(temporary, path)


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
