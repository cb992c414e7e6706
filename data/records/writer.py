"""TFRecord shards: encoded in batches, written whole or not at all."""

import contextlib
import hashlib
import os
import random
import struct
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from common import storage
from common.errors import UserError
from common.progress import Progress
from common.storage import sync_and_hash

_MERGE_BYTES = 1 << 28  # of buffers, over all parts


def encode_examples(arrays: dict[str, np.ndarray]) -> list[bytes]:
    """Serializes rows as `tf.train.Example`, features in the order given.

    Encodes whole batches, several times as fast as one example at a time.

    Args:
        arrays: name -> `int64 [N, length]` or `float32 [N, length]`.

    Returns:
        N serialized examples.
    """
    entries = []
    for name, array in arrays.items():
        rows = len(array)
        is_int = array.dtype == np.int64
        kind, field = (
            ("Int64List", "int64_list")
            if is_int
            else ("FloatList", "float_list")
        )
        values = _message(f"tensorflow.{kind}", {"value": array})
        feature = _message("tensorflow.Feature", {field: values[:, None]})
        entries.append(
            _message(
                "tensorflow.Features.FeatureEntry",
                {"key": tf.fill([rows, 1], name), "value": feature[:, None]},
            )
        )
    features = _message(
        "tensorflow.Features", {"feature": tf.stack(entries, axis=1)}
    )
    examples = _message("tensorflow.Example", {"features": features[:, None]})
    return examples.numpy().tolist()


class ShardWriter:
    """Writes records to shards that get their names when all is written.

    Records come in parts, one for each bucket of the corpus, that others
    write at `part_path`. They are merged at the end in a random order over
    all shards, so that neighbours in a shard are not neighbours in the
    corpus.

    Until `finish` all stands in a hidden folder beside the final place
    (`scratch`, free for other temporary files). As a context manager it
    removes that folder; what a killed run left there, the next run for the
    same paths sweeps.

    Args:
        paths: final paths, all in one folder.

    Raises:
        UserError: the folder cannot be made or written.
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
        """Where the records of a bucket belong until `finish`."""
        return f"{self.scratch}/part-{number:05d}"

    def finish(self, counts: list[int], seed: int) -> dict[str, dict]:
        """Merges the parts and gives the shards their names.

        The n-th record drawn goes to shard n modulo their number. With one
        part the order stays.

        Args:
            counts: records of each part.
            seed: of the order.

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
    """Draws part numbers, each as often as it counts.

    Every order is as probable as any other: at each draw a part's chance is
    its share of what is left. Memory is that of `counts`.

    Args:
        counts: records of each part.
        rng: what is drawn with.

    Yields:
        numbers of parts.
    """
    leaves = 1 << max(0, len(counts) - 1).bit_length()
    left = [0] * leaves + counts + [0] * (leaves - len(counts))
    for node in range(leaves - 1, 0, -1):  # a tree of sums, root at 1
        left[node] = left[2 * node] + left[2 * node + 1]
    for remaining in range(sum(counts), 0, -1):
        place, node = rng.randrange(remaining), 1
        while node < leaves:
            left[node] -= 1
            node *= 2
            if place >= left[node]:
                place -= left[node]
                node += 1
        left[node] -= 1
        yield node - leaves


class _Part:
    """Frames of a TFRecord file, a chunk at a time; no file stays open."""

    def __init__(self, path: str, chunk: int):
        self._path, self._chunk = path, chunk
        self._offset, self._at, self._buffer = 0, 0, b""

    def next_frame(self) -> bytes:
        """Length, its checksum, the record, its checksum."""
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


def _message(message_type: str, fields: dict) -> tf.Tensor:
    """Serializes one message a row; each field is `[N, how often]`."""
    rows = len(next(iter(fields.values())))
    sizes = [values.shape[1] for values in fields.values()]
    return tf.io.encode_proto(
        sizes=np.tile(np.array(sizes, np.int32), (rows, 1)),
        values=list(fields.values()),
        field_names=list(fields),
        message_type=message_type,
    )


def _cannot_write(path: str, error: Exception, size: int = 0) -> UserError:
    """What to tell; `size` bytes were to be written."""
    cause = getattr(error, "strerror", None) or getattr(error, "message", error)
    cause = str(cause).removeprefix(f"{path}; ")  # TensorFlow names it too
    found = f"cannot be written: {cause}"
    if size:
        found += f" ({size / 1e6:.1f} MB{storage.describe_free_space(path)})"
    return UserError(
        found,
        path=path,
        fix="check the path, its permissions and the free space",
    )
