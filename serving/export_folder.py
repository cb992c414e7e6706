"""Output folder of an export, written atomically."""

from collections.abc import Callable

from common import storage
from common.progress import say
from serving import known_exports

_GRAPH = "saved_model.pb"


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
