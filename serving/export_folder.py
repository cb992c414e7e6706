"""Output folder of an export: checked in advance, written atomically."""

import os
import shutil
from collections.abc import Callable

from common.errors import UserError
from common.storage import sync_and_hash
from serving import known_exports


def check(folder: str | None, flag: str = "export_dir") -> None:
    """Rejects a folder that is not empty.

    Args:
        folder: path of the folder; None without export.
        flag: name of its flag, for messages.

    Raises:
        UserError: if the folder is not empty, is a file, or is not local.
    """
    if folder is not None and "://" in folder:
        raise UserError(
            f"--{flag}={folder!r}",
            expected="a local folder",
            fix="export to a local folder, and copy it",
        )
    if folder is None or not os.path.lexists(folder):
        return
    if not os.path.isdir(folder) or os.listdir(folder):
        raise UserError(
            "already exists",
            path=folder,
            expected="a new or empty folder",
            fix=f"pass another --{flag}",
        )


def write(folder: str, save: Callable[[str], None]) -> str:
    """Writes an export to a temporary folder, renames it, remembers it.

    Args:
        folder: path of a new or empty folder.
        save: writes the files to the folder of its argument; it may also
            check them and raise errors.

    Returns:
        the path of the folder.

    Raises:
        UserError: if the disk is full or cannot be written.
    """
    import tensorflow as tf

    folder = folder.rstrip("/")
    partial = f"{folder}.partial"
    try:
        os.makedirs(os.path.dirname(os.path.abspath(folder)), exist_ok=True)
        if os.path.isdir(partial):  # left by an export that was killed
            shutil.rmtree(partial)
        save(partial)
        for parent, _, files in os.walk(partial):
            for file in files:
                sync_and_hash(os.path.join(parent, file))
        if os.path.isdir(folder):
            os.rmdir(folder)
        os.rename(partial, folder)
    except (OSError, tf.errors.OpError) as error:
        why = getattr(error, "strerror", None) or error.message
        raise UserError(f"cannot be written: {why}", path=folder) from None
    finally:
        if os.path.isdir(partial):
            shutil.rmtree(partial)
    known_exports.remember(folder)
    return folder
