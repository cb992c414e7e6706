"""Writes TFRecord files and their manifest atomically."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator

import msgspec

from bert.common import atomic, locks, storage
from bert.common.atomic import write_whole
from bert.common.errors import StorageError
from bert.common.processes import KilledProcess
from bert.common.progress import log
from bert.data.records import manifest
from bert.data.records.shard_check import ShardEntry
from bert.data.text.tokenizer import Tokenizer


def scratch_folder(
    paths: list[str], identity: str, is_shared: bool = False
) -> str:
    """Returns the hidden folder of a run's unfinished files.

    Args:
        paths: list of str. The outputs, all in one folder.
        identity: str. Describes everything that the files depend on.
        is_shared: bool. Whether other machines write to it. True: the folder
            is beside the outputs. False: for outputs on shared storage, it is
            a local temporary folder. Default: False.
    """
    names = json.dumps(_names(paths))
    name = f".partial-{_hash(names)[:8]}-{_hash(identity)[:12]}"
    folder = os.path.dirname(storage.absolute(paths[0]))
    return f"{folder}/{name}" if is_shared else atomic.scratch(folder, name)


@contextlib.contextmanager
def claim(paths: list[str], scratch: str) -> Iterator[str]:
    """Context manager that locks outputs, so that only one run writes them.

    A killed run leaves its unfinished files. The same command continues with
    them; another run with the same outputs removes them.

    Args:
        paths: list of str. The outputs.
        scratch: str. The folder of unfinished files from `scratch_folder`.

    Yields:
        str. The folder of the outputs.

    Raises:
        UserError: A folder cannot be written, or another process writes the
            same outputs.
    """
    folder = os.path.dirname(storage.absolute(paths[0]))
    is_new, kept = not storage.exists(folder), []
    try:
        with contextlib.ExitStack() as held:
            try:
                storage.make_folder(folder)
                for name in _names(paths):
                    lock = atomic.scratch(folder, f".{name}.lock")
                    held.enter_context(locks.hold(lock, f"{folder}/{name}"))

                # With the locks held, other folders belong to killed runs.
                beside, name = os.path.split(scratch)
                runs = storage.find(beside, f"{name.rpartition('-')[0]}-*")
                for other in set(runs) - {scratch}:
                    storage.remove_folder(other)
                storage.make_folder(scratch)
            except OSError as error:
                raise atomic.write_error(folder, error) or error from None

            try:
                yield folder
            except (KeyboardInterrupt, KilledProcess, StorageError):
                if kept := storage.find(scratch, "part-*.json"):
                    log(
                        f"{len(kept)} finished partitions are kept in "
                        f"{scratch}; the same command continues"
                    )
                raise
            finally:
                if not kept:
                    storage.remove_folder(scratch)
    finally:
        if is_new:
            with contextlib.suppress(OSError):  # if it is not empty
                os.rmdir(folder)


def write_manifest(
    folder: str,
    shards: dict[str, ShardEntry],
    tokenizer: Tokenizer,
    run: dict,
) -> None:
    """Writes the manifest of a run, and a copy of its vocabulary.

    Args:
        folder: str. Folder of the shards.
        shards: dict. File name -> ShardEntry.
        tokenizer: Tokenizer. Its vocabulary is copied to the folder, with its
            hash in the name.
        run: dict. Settings and statistics, as JSON values.
    """
    name = f"vocab-{tokenizer.sha256[:8]}.txt"
    listed = {
        "format": 2,
        **run,
        "vocab_file": name,
        "vocab_sha256": tokenizer.sha256,
        "shards": {k: msgspec.structs.asdict(x) for k, x in shards.items()},
    }
    text = json.dumps(listed, indent=2) + "\n"
    path = os.path.join(folder, manifest.name_for(next(iter(shards))))

    # Parallel runs may write the same vocabulary.
    partial = f"{os.getpid()}.partial"
    write_whole(os.path.join(folder, name), tokenizer.content, partial)
    write_whole(path, text, partial)


def _names(paths: list[str]) -> list[str]:
    """Returns the names of the runs that write these files."""
    return sorted(set(map(manifest.run_name, paths)))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
