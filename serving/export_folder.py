"""Output folder of an export: checked in advance, written atomically."""

from collections.abc import Callable

from common import storage
from common.errors import UserError
from common.progress import say
from serving import known_exports


def check(folder: str | None, flag: str = "export_dir") -> None:
    """Rejects a folder that is not empty.

    Args:
        folder: path of the folder; None without export.
        flag: name of its flag, for messages.

    Raises:
        UserError: if the folder is not empty, or is a file.
    """
    if folder is None or not storage.exists(folder):
        return
    if not storage.is_folder(folder) or storage.list_folder(folder):
        raise UserError(
            "already exists",
            path=folder,
            expected="a new or empty folder",
            fix=f"pass another --{flag}",
        )


def write(folder: str, save: Callable[[str], None]) -> str:
    """Writes an export to a temporary folder, renames it, remembers it.

    On shared storage the graph, which makes it an export, is written last.

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
    say(f"exporting to {folder} ...")
    partial = storage.unfinished(folder)
    try:
        storage.make_folder(storage.parent(folder))
        storage.remove_folder(partial)  # left by an export that was killed
        save(partial)
        for file in storage.files_below(partial):
            storage.sync_and_hash(file)
        known_exports.remember(partial, folder)
        if storage.is_remote(folder):
            storage.copy_folder(partial, folder, last="saved_model.pb")
            return folder
        storage.replace(partial, folder)
    except (OSError, tf.errors.OpError) as error:
        why = getattr(error, "strerror", None) or error.message
        raise UserError(f"cannot be written: {why}", path=folder) from None
    finally:
        storage.remove_folder(partial)
    return folder
