"""Output folder of an export: checked in advance, written atomically."""

import os
from collections.abc import Callable

from common import outputs, storage
from common.errors import UserError
from common.progress import say
from serving import known_exports

_GRAPH = "saved_model.pb"
_SCRATCH = ".partial-export"  # in a folder that exists


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
    is_folder = storage.is_folder(folder)
    if not is_folder or set(storage.list_folder(folder)) - {_SCRATCH}:
        raise UserError(
            "already exists",
            path=folder,
            expected="a new or empty folder",
            fix=f"pass another --{flag}",
        )


def write(folder: str, save: Callable[[str], None]) -> str:
    """Writes an export to a temporary folder, renames it, remembers it.

    On shared storage the graph, which makes it an export, is written last; so
    it is in a folder that exists, as it may be a mount or a link.

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
    inside = not storage.is_remote(folder) and storage.is_folder(folder)
    partial = (
        storage.scratch(folder, _SCRATCH)
        if inside
        else storage.unfinished(folder)
    )
    try:
        storage.make_folder(outputs.parent(folder))
        storage.remove_folder(partial)  # left by an export that was killed
        save(partial)
        for file in storage.files_below(partial):
            storage.sync_and_hash(file)
        known_exports.remember(partial, folder)
        if storage.is_remote(folder):
            outputs.copy_folder(partial, folder, last=_GRAPH)
        elif inside:
            names = storage.list_folder(partial)
            for name in sorted(names, key=lambda name: name == _GRAPH):
                storage.replace(
                    os.path.join(partial, name), os.path.join(folder, name)
                )
        else:
            storage.replace(partial, folder)
    except (OSError, tf.errors.OpError) as error:
        found = f"cannot be written: {outputs.cause_of(error)}"
        raise UserError(found, path=folder) from None
    finally:
        storage.remove_folder(partial)
    return folder
