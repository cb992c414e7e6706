"""Writing of TFRecord shards, completely or not at all."""

import contextlib
import hashlib
import os
import random
import struct
from collections.abc import Iterator

import tensorflow as tf

from common import storage
from common.errors import UserError
from common.progress import Progress
from common.storage import sync_and_hash

_MERGE_BYTES = 1 << 28  # of the buffers of all parts


class ShardWriter:
    """Merges parts into shards, which are renamed when all are complete.

    Records come in parts, one for each partition of the corpus, which the
    caller writes to `part_path`. `finish` merges them in a random order over
    all shards, so that neighbours in a shard are not neighbours in the corpus.

    Until then all files are in `scratch`, a hidden folder in the final folder,
    which the caller may use for other temporary files. The context manager
    removes it; the files of a killed run are removed by the next run with the
    same paths.

    Args:
        paths: final paths, all in one folder.

    Raises:
        UserError: the folder cannot be created or written.
    """

    def __init__(self, paths: list[str]):
        digest = hashlib.sha256("\n".join(paths).encode()).hexdigest()
        self.folder = os.path.dirname(storage.absolute(paths[0]))
        self.scratch = f"{self.folder}/.partial-{digest[:8]}"
        self._paths = paths
        try:
            storage.make_folder(self.folder)
            storage.remove_folder(self.scratch)
            storage.make_folder(self.scratch)
        except (OSError, tf.errors.OpError) as error:
            raise _cannot_write(self.folder, error) from None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        storage.remove_folder(self.scratch)

    def part_path(self, number: int) -> str:
        """Path of the records of a partition until `finish`."""
        return f"{self.scratch}/part-{number:05d}"

    def finish(self, counts: list[int], seed: int) -> dict[str, dict]:
        """Merges the parts and renames the shards.

        The n-th drawn record goes to shard n modulo the number of shards. The
        order within a part is kept.

        Args:
            counts: number of records of each part.
            seed: seed of the order.

        Returns:
            file name -> `{"records", "bytes", "sha256"}`.

        Raises:
            UserError: the disk is full or cannot be written.
        """
        written = [f"{self.scratch}/shard-{i}" for i in range(len(self._paths))]
        try:
            self._merge(counts, seed, written)
            shards = {}
            for number, (source, path) in enumerate(zip(written, self._paths)):
                shards[os.path.basename(path)] = {
                    "records": len(range(number, sum(counts), len(written))),
                    "bytes": storage.size(source),
                    "sha256": sync_and_hash(source),
                }
            for source, path in zip(written, self._paths):
                storage.replace(source, path)
            storage.remove_folder(self.scratch)
        except (OSError, tf.errors.OpError) as error:
            size = sum(
                storage.size(self.part_path(i)) for i in range(len(counts))
            )
            raise _cannot_write(self.folder, error, size) from None
        return shards

    def _merge(self, counts: list[int], seed: int, written: list[str]) -> None:
        chunk = max(1 << 14, min(1 << 18, _MERGE_BYTES // len(counts)))
        parts = [_Part(self.part_path(i), chunk) for i in range(len(counts))]
        progress = Progress("shards", sum(counts), "records")
        with contextlib.ExitStack() as stack:
            files = [
                stack.enter_context(storage.open_file(path, "wb"))
                for path in written
            ]
            order = draw_parts(counts, random.Random(f"{seed}/merge"))
            for number, part in enumerate(order):
                files[number % len(files)].write(parts[part].next_frame())
                if number % 10_000 == 0:
                    progress.update(number)


def write_records(path: str, records: list[bytes]) -> None:
    """Writes a TFRecord file.

    Raises:
        UserError: the disk is full or cannot be written.
    """
    try:
        with tf.io.TFRecordWriter(path) as writer:
            for record in records:
                writer.write(record)
    except tf.errors.OpError as error:
        size = sum(16 + len(record) for record in records)
        raise _cannot_write(path, error, size) from None


def draw_parts(counts: list[int], rng: random.Random) -> Iterator[int]:
    """Draws a random order of the records of several parts.

    All orders have the same probability: in each draw, a part's probability is
    its share of the remaining records. Memory is O(len(counts)).

    Args:
        counts: number of records of each part.
        rng: source of the order.

    Yields:
        For each record, the number of its part.
    """
    leaves = 1 << max(0, len(counts) - 1).bit_length()
    left = [0] * leaves + counts + [0] * (leaves - len(counts))
    for node in range(leaves - 1, 0, -1):  # a tree of sums, root at 1
        left[node] = left[2 * node] + left[2 * node + 1]
    for remaining in range(sum(counts), 0, -1):
        rank, node = rng.randrange(remaining), 1
        while node < leaves:
            left[node] -= 1
            node *= 2
            if rank >= left[node]:
                rank -= left[node]
                node += 1
        left[node] -= 1
        yield node - leaves


class _Part:
    """Reads the frames of a TFRecord file in chunks; keeps no file open."""

    def __init__(self, path: str, chunk: int):
        self._path, self._chunk = path, chunk
        self._offset, self._at, self._buffer = 0, 0, b""

    def next_frame(self) -> bytes:
        """Next frame: length, its checksum, the record, its checksum."""
        self._need(12)
        (length,) = struct.unpack_from("<Q", self._buffer, self._at)
        self._need(length + 16)
        start, self._at = self._at, self._at + length + 16
        return self._buffer[start : self._at]

    def _need(self, size: int) -> None:
        if len(self._buffer) - self._at >= size:
            return
        with storage.open_file(self._path, "rb") as file:
            file.seek(self._offset)
            more = file.read(max(self._chunk, size))
        self._offset += len(more)
        self._buffer, self._at = self._buffer[self._at :] + more, 0


def _cannot_write(path: str, error: Exception, size: int = 0) -> UserError:
    """Error of a failed write of `size` bytes."""
    cause = getattr(error, "strerror", None) or getattr(error, "message", error)
    cause = str(cause).removeprefix(f"{path}; ")  # TensorFlow adds the path
    found = f"cannot be written: {cause}"
    if size:
        found += f" ({size / 1e6:.1f} MB{storage.describe_free_space(path)})"
    return UserError(
        found,
        path=path,
        fix="check the path, its permissions and the free space",
    )
