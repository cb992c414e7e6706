"""Output folder of an export, written atomically."""

import os
from collections.abc import Callable
from typing import Any

from bert.common import atomic, storage
from bert.common.formats import json_files
from bert.common.progress import say
from bert.serving import known_exports

_GRAPH = "saved_model.pb"
METRICS = "assets.extra/metrics.json"  # name -> value
EXAMPLE = "assets.extra/example.json"  # input -> text


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
    with atomic.whole_folder(folder, _GRAPH) as partial:
        save(partial)
        known_exports.remember(partial, folder)
    return folder


def write_extra(folder: str, name: str, values: dict) -> None:
    """Writes what a page tells of an export, and TensorFlow does not read.

    Args:
        folder: path of the export.
        name: METRICS or EXAMPLE.
        values: the values.
    """
    path = os.path.join(folder, name)
    storage.make_folder(os.path.dirname(path))
    text = json_files.to_json(values, indent=1, ensure_ascii=False)
    atomic.write_whole(path, text + "\n")


def read_extra(folder: str, name: str, kind: Any) -> dict:
    """Reads what `write_extra` has written; {} if there is none.

    Args:
        folder: path of the export.
        name: METRICS or EXAMPLE.
        kind: type of the values.

    Raises:
        UserError: it is damaged.
    """
    path = os.path.join(folder, name)
    return json_files.read(path, kind) if storage.exists(path) else {}
