"""Output folder of an export: checked in advance, written atomically."""

from collections.abc import Callable

from common import storage
from common.errors import UserError
from common.progress import say
from serving import known_exports

_GRAPH = "saved_model.pb"


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
    if not is_folder or set(storage.list_folder(folder)) - {storage.UNFINISHED}:
        raise UserError(
            "already exists",
            path=folder,
            expected="a new or empty folder",
            fix=f"pass another --{flag}",
        )


def write(folder: str, save: Callable[[str], None]) -> str:
    """Writes an export to a temporary folder, renames it, remembers it.

    On shared storage the graph, which makes it an export, is written last; so
    it is in a folder that exists, which may be a mount or a link.

    Args:
        folder: path of a new or empty folder.
        save: writes the files to the folder of its argument; it may also
            check them and raise errors.

    Returns:
        the path of the folder.

    Raises:
        UserError: if the disk is full or cannot be written.
    """
    folder = folder.rstrip("/")
    say(f"exporting to {folder} ...")
    with storage.whole_folder(folder, _GRAPH) as partial:
        save(partial)
        known_exports.remember(partial, folder)
    return folder
