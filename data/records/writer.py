"""Writing of TFRecord files, completely or not at all."""

import contextlib
import glob
import hashlib
import json
import os
import shutil
import tempfile
from typing import Any

from common import locks, storage
from common.errors import StorageError
from common.processes import KilledProcess
from common.progress import say
from common.storage import write_whole
from data.records import frames, manifest, shuffle
from data.text.tokenizer import Tokenizer


class ShardWriter:
    """The files of a run until its shards are complete: a context manager.

    They are in `scratch`, a hidden folder in the final folder, or in the
    folder of temporary files if the final one is on remote storage. Its name
    is a hash of the outputs and of all that the records depend on. A run that
    is killed leaves the folder; the same run finds its parts there, and
    another run into the same outputs removes it.

    Only one process at a time writes the same outputs.

    Args:
        paths: final paths, all in one folder.
        identity: describes all that the records depend on.

    Attributes:
        folder: the final folder.
        scratch: local folder of temporary files.
        staging: folder of the shards until `finish`, beside the final paths.

    Raises:
        UserError: the folder cannot be created or written, or another process
            writes there.
    """

    def __init__(self, paths: list[str], identity: str = ""):
        self.folder = os.path.dirname(storage.absolute(paths[0]))
        self._paths, self._is_remote = paths, storage.is_remote(paths[0])
        self._names = sorted({manifest.run_name(path) for path in paths})
        self._root = self.folder
        if self._is_remote:
            name = f"bert-{os.getuid()}-{_hash(self.folder)[:8]}"
            self._root = os.path.join(tempfile.gettempdir(), name)
        self._start = f".partial-{_hash('/'.join(self._names))[:8]}-"
        name = self._start + _hash("\n".join([*paths, identity]))[:12]
        self.scratch = os.path.join(self._root, name)
        self.staging = f"{self.folder}/{name}"
        self._locks = contextlib.ExitStack()

    def __enter__(self):
        try:
            self._is_new = not storage.exists(self.folder)
            for folder in dict.fromkeys([self.folder, self._root]):
                storage.make_folder(folder)
            for name in self._names:
                path = os.path.join(self._root, f".{name}.lock")
                what = f"{self.folder}/{name}"
                self._locks.enter_context(locks.hold(path, what))
            for path in storage.find(self._root, f"{self._start}*"):
                if path != self.scratch:  # where an orphan may be at work
                    shutil.rmtree(path, ignore_errors=True)
            if self._is_remote:
                for path in storage.find(self.folder, f"{self._start}*"):
                    if path != self.staging:
                        storage.remove_folder(path)
            for folder in dict.fromkeys([self.scratch, self.staging]):
                storage.make_folder(folder)
        except BaseException as error:
            self._locks.close()
            raise storage.write_error(self.folder, error) or error from None
        return self

    def __exit__(self, kind, *error):
        with contextlib.ExitStack() as last:
            if self._is_remote or (kind and self._is_new):
                last.callback(self._remove_empty_root)
            last.enter_context(self._locks)
            stopped = kind and issubclass(
                kind, (KeyboardInterrupt, KilledProcess, StorageError)
            )
            if stopped and self.finished_parts():
                say(
                    f"{len(self.finished_parts())} finished partitions are "
                    f"kept in {self.scratch}; the same command continues"
                )
                return
            shutil.rmtree(self.scratch, ignore_errors=True)
            if self._is_remote:
                storage.remove_folder(self.staging)

    def _remove_empty_root(self) -> None:
        with contextlib.suppress(OSError):
            os.rmdir(self._root)

    def part_path(self, number: int) -> str:
        """Path of a partition's records."""
        return os.path.join(self.scratch, f"part-{number:05d}")

    def finished_parts(self) -> set[int]:
        """Numbers of the partitions whose records are here."""
        found = glob.glob(f"{glob.escape(self.scratch)}/part-*.json")
        return {int(path[:-5].rpartition("-")[2]) for path in found}

    def write_note(self, name: str, value) -> None:
        """Saves a JSON value for a run that continues after a kill."""
        storage.write_whole(self._note_path(name), json.dumps(value))

    def read_note(self, name: str) -> Any:
        """Returns the value that `write_note` saved, or None."""
        return _read_json(self._note_path(name))

    def _note_path(self, name: str) -> str:
        return os.path.join(self.scratch, f"{name}.json")

    def shard_path(self, number: int) -> str:
        """Path of a shard until `finish`."""
        return shard_path(self.staging, number)

    def finish(self, entries: list[dict]) -> dict[str, dict]:
        """Renames the shards.

        Args:
            entries: `{"records", "bytes", "sha256"}` of each shard.

        Returns:
            file name -> entry.

        Raises:
            UserError: a file cannot be renamed.
        """
        try:
            for number, path in enumerate(self._paths):
                storage.replace(self.shard_path(number), path)
            if not self._is_remote:
                storage.sync(self.folder)
        except OSError as error:
            raise storage.write_error(self.folder, error) or error from None
        return dict(zip(map(os.path.basename, self._paths), entries))


def write_shard(
    path: str, number: int, parts: list[tuple[str, str]], key: str
) -> dict:
    """Writes a shard, completely or not at all.

    A complete local shard of a killed run is kept.

    Args:
        path: its file.
        number: number of the shard.
        parts: names and paths of the parts that have records for it.
        key: seed of the order.

    Returns:
        its entry in a manifest, `{"records", "bytes", "sha256"}`.

    Raises:
        UserError: the disk is full or cannot be written.
    """
    is_local = not storage.is_remote(path)
    entry = _read_json(f"{path}.json") if is_local else None
    if entry and has_digest(path, entry["sha256"]):
        return entry
    # An orphan may be at work.
    with storage.whole_file(path, f"{os.getpid()}.partial") as own:
        portions = [shuffle.open_portion(*part, number) for part in parts]
        with storage.open_file(own, "wb") as file:
            entry = shuffle.write_shard(portions, key, file)
    if is_local:
        storage.write_whole(f"{path}.json", json.dumps(entry))
    return entry


def has_digest(path: str, sha256: str | None) -> bool:
    """Returns whether a file exists and has this sha256."""
    try:
        return storage.hash_file(path) == sha256
    except OSError:
        return False


def shard_path(folder: str, number: int) -> str:
    """Path of a shard in the folder of a run's temporary files."""
    return f"{folder}/shard-{number:05d}"


def write_records(path: str, records: list[bytes]) -> dict:
    """Writes a TFRecord file.

    Returns:
        its entry in a manifest, `{"records", "bytes", "sha256"}`.

    Raises:
        UserError: the disk is full or cannot be written.
    """
    content = frames.join(records)
    storage.write_whole(path, content)
    return {
        "records": len(records),
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def write_manifest(
    folder: str, shards: dict[str, dict], tokenizer: Tokenizer, run: dict
) -> None:
    """Writes the manifest of a run, and a copy of its vocabulary.

    Args:
        folder: folder of the shards.
        shards: file name -> `{"records", "bytes", "sha256"}`.
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
        "shards": shards,
    }
    text = json.dumps(listed, indent=2) + "\n"
    own = f"{os.getpid()}.partial"  # neighbours write the same vocabulary
    write_whole(os.path.join(folder, name), tokenizer.content, own)
    write_whole(
        os.path.join(folder, manifest.name_for(next(iter(shards)))), text, own
    )


def _read_json(path: str) -> Any:
    try:
        with storage.open_file(path, "rb") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _hash(text: str) -> str:
    raw = text.encode("utf-8", "surrogateescape")  # names may be no UTF-8
    return hashlib.sha256(raw).hexdigest()
