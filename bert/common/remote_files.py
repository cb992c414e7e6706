"""Files on shared storage, accessed through TensorFlow's file systems.

Errors are converted to the `OSError`s of local files. Storage that does not
answer raises `StorageError`.
"""

import contextlib
import errno
import io
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from bert.common.errors import StorageError, UserError

_BUFFER = 1 << 20
# Python converts these numbers to `FileNotFoundError` and so on.
_NUMBERS = {
    tf.errors.NotFoundError: errno.ENOENT,
    tf.errors.AlreadyExistsError: errno.EEXIST,
    tf.errors.PermissionDeniedError: errno.EACCES,
    tf.errors.UnauthenticatedError: errno.EACCES,
}
# Errors after TensorFlow's own retries; the last one raises AbortedError.
_OF_STORAGE = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
    tf.errors.ResourceExhaustedError,
    tf.errors.UnavailableError,
    tf.errors.UnknownError,
)


def as_storage_error(error: Exception) -> StorageError | None:
    """Converts an error of TensorFlow that shared storage caused, or None."""
    message = getattr(error, "message", "")
    is_ours = isinstance(error, _OF_STORAGE) and "://" in message
    return StorageError(message) if is_ours else None


@contextlib.contextmanager
def files(path: str) -> Iterator:
    """Context manager with `tf.io.gfile` that converts its errors.

    Args:
        path: str. The path, for the messages.

    Raises:
        OSError: The operation failed, as for a local file.
        StorageError: The storage does not answer.
        UserError: TensorFlow has no file system for the path.
    """
    try:
        yield tf.io.gfile
    except tf.errors.UnimplementedError as error:
        raise UserError(
            f"not supported: {error.message}",
            path=path,
            expected="a local path or gs://",
            fix="other storage needs a file system of TensorFlow, or a mount",
        ) from None
    except _OF_STORAGE as error:
        raise StorageError(f"{path}: {error.message}") from None
    except tf.errors.OpError as error:
        number = _NUMBERS.get(type(error), errno.EIO)
        raise OSError(number, error.message, path) from None


def open_file(path: str, mode: str) -> io.BufferedIOBase:
    """Opens a file; `mode` is `rb`, `wb` or `ab`."""
    raw = _RawFile(path, mode)
    if mode == "rb":
        return io.BufferedReader(raw, _BUFFER)
    return io.BufferedWriter(raw, _BUFFER)


class _RawFile(io.RawIOBase):
    """A `GFile` with the methods of Python's files.

    A written file appears when it is closed, all at once.
    """

    def __init__(self, path: str, mode: str):
        self._path, self._mode = path, mode
        self._file: Any = None  # a `GFile`; None after it is closed
        with files(path) as gfile:
            if mode == "rb":
                gfile.stat(path)  # a missing file is an error now
            # ram:// would append to a file that exists.
            if mode == "wb" and path.startswith("ram:") and gfile.exists(path):
                gfile.remove(path)
            self._file = gfile.GFile(path, mode)
            if mode != "rb":
                self._file.write(b"")  # an unwritable folder is an error now

    def readable(self) -> bool:
        return self._mode == "rb"

    def writable(self) -> bool:
        return self._mode != "rb"

    def seekable(self) -> bool:
        return self._mode == "rb"

    def readinto(self, buffer) -> int:
        with files(self._path):
            content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def write(self, content) -> int:
        content = bytes(content)
        with files(self._path):
            self._file.write(content)
        return len(content)

    def tell(self) -> int:
        with files(self._path):
            return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with files(self._path):
            self._file.seek(offset, whence)
            return self._file.tell()

    def close(self) -> None:
        file, self._file = self._file, None
        try:
            if file is not None:
                with files(self._path):
                    file.close()
        finally:
            super().close()
