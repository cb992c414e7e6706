"""The exports that this person made, which need no --trust_model.

A folder cannot vouch for itself. So the hashes of the exports are kept in the
person's state folder, as `known_hosts` keeps keys: one line for each export,
its hash and its first path. A copy of an export is known too; an export with
another byte is not.
"""

import contextlib
import hashlib
import os

from bert.common import storage

_FOLDERS = ("assets", "variables")


def remember(folder: str, path: str = "") -> None:
    """Adds an export to the list, if the state folder can be written.

    Args:
        folder: folder of the SavedModel.
        path: its final path, if that is another.
    """
    # Without the list, --trust_model is needed, and nothing else is lost.
    list_path = list_file()
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(list_path), mode=0o700, exist_ok=True)
        line = f"{hash_of(folder)} {storage.absolute(path or folder)!r}\n"
        with open(list_path, "a", encoding="utf-8") as file:
            file.write(line)


def is_known(folder: str) -> bool:
    """Returns whether this person made the SavedModel in a folder."""
    try:
        with open(list_file(), encoding="utf-8") as file:
            hashes = {line.partition(" ")[0] for line in file}

        # To hash an export is to read it all, so not for an empty list.
        return bool(hashes) and hash_of(folder) in hashes
    except OSError:
        return False


def list_file() -> str:
    """Returns the path of the list, which may not exist."""
    state = os.environ.get("XDG_STATE_HOME")
    state = state or os.path.expanduser("~/.local/state")
    return os.path.join(state, "bert", "known_exports")


def hash_of(folder: str) -> str:
    """Returns the sha256 of the names and bytes that make the answers.

    Raises:
        OSError: a file cannot be read.
    """
    folder = folder.rstrip("/")
    paths = [
        path
        for root in _FOLDERS
        for path in storage.files_below(os.path.join(folder, root))
    ]

    # In a fixed order, and with names: a renamed file is a change.
    digest = hashlib.sha256()
    for path in [os.path.join(folder, "saved_model.pb"), *sorted(paths)]:
        name = path[len(folder) + 1 :]
        with storage.open_file(path, "rb") as file:
            content = hashlib.file_digest(file, "sha256")
        digest.update(f"{name}\0{content.hexdigest()}\n".encode())
    return digest.hexdigest()
