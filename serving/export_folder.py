"""The folder of an exported model: checked before, written whole."""

import os
import shutil
from collections.abc import Callable

from common.errors import UserError
from common.storage import sync_and_hash


def check(folder: str | None, flag: str = "export_dir") -> None:
    """Refuses a folder that holds something.

    Args:
        folder: or None, if nothing is exported.
        flag: its name, for the message.

    Raises:
        UserError: it does, it is a file, or it is not on this machine.
    """
    if folder is not None and "://" in folder:
        raise UserError(
            f"--{flag}={folder!r}",
            expected="a folder of this machine",
            fix="copy it from there, once it is whole",
        )
    if folder is None or not os.path.lexists(folder):
        return
    if not os.path.isdir(folder) or os.listdir(folder):
        raise UserError(
            "is there already",
            path=folder,
            expected="an empty folder or none",
            fix=f"pass another --{flag}",
        )


def write(folder: str, save: Callable[[str], None]) -> str:
    """Writes an export under a temporary name, then gives it its own.

    Args:
        folder: that holds nothing.
        save: writes the files to the folder that it is given; it may look
            at them too, and raise what is wrong.

    Returns:
        the folder.

    Raises:
        UserError: the disk is full or cannot be written.
    """
    import tensorflow as tf

    folder = folder.rstrip("/")
    partial = f"{folder}.partial"
    try:
        os.makedirs(os.path.dirname(os.path.abspath(folder)), exist_ok=True)
        if os.path.isdir(partial):  # of an export that was killed
            shutil.rmtree(partial)
        save(partial)
        for place, _, files in os.walk(partial):
            for file in files:
                sync_and_hash(os.path.join(place, file))
        if os.path.isdir(folder):
            os.rmdir(folder)
        os.rename(partial, folder)
    except (OSError, tf.errors.OpError) as error:
        why = getattr(error, "strerror", None) or error.message
        raise UserError(f"cannot be written: {why}", path=folder) from None
    finally:
        if os.path.isdir(partial):
            shutil.rmtree(partial)
    return folder
