"""Files that appear whole or not at all, also when the power fails."""

import hashlib
import os


def sync_and_hash(path: str) -> str:
    """Forces a file to the disk; returns its sha256 as hexadecimal digits."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_whole(path: str, content: str | bytes) -> None:
    """Writes a file under a temporary name, then gives it its own.

    Args:
        path: the file; one that is there is replaced.
        content: text is written as UTF-8.
    """
    if isinstance(content, str):
        content = content.encode()
    temporary = f"{path}.partial"
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
