"""The folder of an exported model: checked before, written whole."""

import os
import shutil
from collections.abc import Callable

from errors import UserError


def check(folder: str | None) -> None:
    """Refuses a folder that holds something.

    Raises:
        UserError: so it does, or it is a file.
    """
    if folder is None or not os.path.exists(folder):
        return
    if not os.path.isdir(folder) or os.listdir(folder):
        raise UserError(
            "is there already",
            path=folder,
            expected="an empty folder or none",
            fix="pass another --export_dir",
        )


def write(folder: str, save: Callable[[str], None]) -> str:
    """Writes an export under a temporary name, then gives it its own.

    Args:
        folder: that holds nothing.
        save: writes the files to the folder that it is given.

    Returns:
        the folder.

    Raises:
        UserError: the disk is full or cannot be written.
    """
    folder = folder.rstrip("/")
    partial = f"{folder}.partial"
    try:
        if os.path.isdir(partial):
            shutil.rmtree(partial)
        save(partial)
        if os.path.isdir(folder):
            os.rmdir(folder)
        os.rename(partial, folder)
    except OSError as error:
        raise UserError(
            f"cannot be written: {error.strerror}", path=folder
        ) from None
    return folder
