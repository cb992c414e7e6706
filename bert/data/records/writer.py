"""Writing of TFRecord files and their manifest, completely or not at all."""

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
from bert.common.progress import say
from bert.data.records import manifest
from bert.data.records.shard_check import ShardEntry
from bert.data.text.tokenizer import Tokenizer


def scratch_folder(
    paths: list[str], identity: str, is_shared: bool = False
) -> str:
    """The folder of a run's unfinished files: hidden, beside its outputs.

    Args:
        paths: the outputs, all in one folder.
        identity: describes all that the unfinished files depend on.
        is_shared: whether other machines write there; else the folder is
            local, for outputs on remote storage one of temporary files.
    """
    names = json.dumps(_names(paths))
    name = f".partial-{_hash(names)[:8]}-{_hash(identity)[:12]}"
    folder = os.path.dirname(storage.absolute(paths[0]))
    return f"{folder}/{name}" if is_shared else atomic.scratch(folder, name)


@contextlib.contextmanager
def claim(paths: list[str], scratch: str) -> Iterator[str]:
    """Context of the only run that writes some outputs.

    A run that is killed leaves its unfinished files: the same run finds them,
    and another run into the same outputs removes them.

    Args:
        paths: the outputs.
        scratch: the folder of unfinished files, from `scratch_folder`.

    Yields:
        the folder of the outputs.

    Raises:
        UserError: a folder cannot be written, or another process writes the
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

                # Nobody else writes these outputs: other folders are of runs
                # that were killed.
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
                    say(
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
        folder: folder of the shards.
        shards: file name -> entry.
        tokenizer: its vocabulary is copied to the folder, under a name made
            of its hash.
        run: settings and statistics, as JSON values.
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

    # Neighbours write the same vocabulary.
    partial = f"{os.getpid()}.partial"
    write_whole(os.path.join(folder, name), tokenizer.content, partial)
    write_whole(path, text, partial)


def _names(paths: list[str]) -> list[str]:
    """Names of the runs that write such files."""
    return sorted(set(map(manifest.run_name, paths)))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
