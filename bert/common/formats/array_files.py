"""Arrays in files of a run, as NumPy writes them."""

import io
import zipfile

import numpy as np

from bert.common import atomic, storage


def write(path: str, values: np.ndarray) -> None:
    """Writes an array.

    Args:
        path: str. The file; an existing file is replaced.
        values: float32 [N, D].
    """
    content = io.BytesIO()
    np.save(content, values)
    atomic.write_whole(path, content.getvalue())


def read(path: str) -> np.ndarray | None:
    """Reads an array, float32 [N, D]; None if the file is damaged."""
    with storage.open_file(path, "rb") as file:
        content = io.BytesIO(file.read())
    try:
        values = np.load(content)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile):
        return None
    is_whole = (
        isinstance(values, np.ndarray)
        and values.dtype == np.float32
        and values.ndim == 2
        and np.isfinite(values).all()
    )
    return values if is_whole else None
