"""Shuffles records into shards, in two steps.

First, each part of the records is distributed over the shards. Then each shard
shuffles its records from all parts. The order depends only on the records and
the seed, and records need not fit in memory.

A part is a file with one portion for each shard:

offsets  uint64 [N + 1]    start of each portion, and end of the last portion
portion    count uint64, lengths uint32 [count], concatenated frames

See `frames` for the format of frames.
"""

import concurrent.futures
import dataclasses
import hashlib
from collections.abc import Iterator

import numpy as np

from bert.common import storage
from bert.data.records import frames as framing
from bert.data.records.shard_check import ShardEntry

BUCKET_BYTES = 32 << 20  # bytes of a shard that are shuffled at once
_AT_ONCE = 4096  # number of frames per write
_COUNT = 8  # bytes of a count or an offset


def distribute(records: list[bytes], num_shards: int, key: str) -> list[bytes]:
    """Distributes records evenly over shards, in random order.

    Args:
        records: list of bytes. N serialized records.
        num_shards: int. Number of shards.
        key: str. Seed of the order.

    Returns:
        list of bytes. The portion of each shard.
    """
    count = len(records)
    order = permutation(f"{key}/order", count)

    # The remainder goes to random shards, so that shards have similar sizes.
    sizes = np.full(num_shards, count // num_shards)
    sizes[permutation(f"{key}/rest", num_shards)[: count % num_shards]] += 1

    portions = []
    for numbers in np.split(order, np.cumsum(sizes)[:-1]):
        chosen = [records[i] for i in numbers.tolist()]

        # See the module's docstring for the layout of a portion.
        lengths = np.fromiter(map(len, chosen), "<u4", len(chosen))
        head = len(chosen).to_bytes(_COUNT, "little")
        head += (lengths + np.uint32(framing.OVERHEAD)).tobytes()
        portions.append(framing.join(chosen, head))
    return portions


def write_portions(file, portions: list[bytes]) -> None:
    """Writes the portions of a part to an open file."""
    # Offsets are relative to the start of the file.
    offsets = np.cumsum([_COUNT * (len(portions) + 1), *map(len, portions)])
    for content in (offsets.astype("<u8").tobytes(), *portions):
        file.write(content)


def read_portion(file, shard: int) -> bytes:
    """Reads the portion of a shard from the open file of a part."""
    file.seek(_COUNT * shard)
    start, end = np.frombuffer(file.read(2 * _COUNT), "<u8").tolist()
    file.seek(start)
    return file.read(end - start)


@dataclasses.dataclass(frozen=True)
class Portion:
    """The records of a part that belong to a shard.

    Attributes:
        name: str. Name of the part, which is used in the seed.
        path: str. File with the portion.
        start: int. Offset of its first frame in the file.
        lengths: uint32 [N]. Lengths of its frames.
    """

    name: str
    path: str
    start: int
    lengths: np.ndarray

    @property
    def size(self) -> int:
        """Total number of bytes of the frames."""
        return int(self.lengths.sum(dtype=np.int64))

    @classmethod
    def open(cls, name: str, path: str, offset: int) -> "Portion":
        """Reads the lengths of a portion.

        Args:
            name, path: str. See the attributes.
            offset: int. Start of the portion in the file.
        """
        with storage.open_file(path, "rb") as file:
            file.seek(offset)
            count = int.from_bytes(file.read(_COUNT), "little")
            lengths = np.frombuffer(file.read(4 * count), "<u4")
        return cls(name, path, offset + _COUNT + 4 * count, lengths)

    def read_into(self, buffer: memoryview, first: int, last: int) -> int:
        """Reads the frames `first` to `last - 1` to the start of a buffer.

        Returns:
            int. Their size in bytes.
        """
        size = int(self.lengths[first:last].sum(dtype=np.int64))
        if size:
            before = int(self.lengths[:first].sum(dtype=np.int64))
            with storage.open_file(self.path, "rb") as file:
                file.seek(self.start + before)
                file.readinto(buffer[:size])
        return size


def open_portion(name: str, path: str, shard: int, spool=None) -> Portion:
    """Opens the portion of a shard in a part.

    Args:
        name, path: str. See `Portion`.
        shard: int. Number of the shard.
        spool: open local file or None. The portion is copied to it, as it is
            read several times. Default: None, read it from the part.
    """
    with storage.open_file(path, "rb") as file:
        if spool:
            path, offset = spool.name, spool.tell()
            spool.write(read_portion(file, shard))
            spool.flush()
        else:
            file.seek(_COUNT * shard)
            offset = int.from_bytes(file.read(_COUNT), "little")
    return Portion.open(name, path, offset)


def write_shard(portions: list[Portion], key: str, file) -> ShardEntry:
    """Shuffles the records of a shard and writes them.

    The records are divided into random buckets, and each bucket is shuffled in
    memory. The records of a portion are already in random order, so a bucket
    may consist of adjacent records.

    Args:
        portions: list of Portion. One from each part, in order.
        key: str. Seed of the order.
        file: binary file. Open for writing.

    Returns:
        ShardEntry. The entry of the manifest.
    """
    # While a chunk is written, it is hashed and the next chunk is prepared.
    digest, size = hashlib.sha256(), 0
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        for chunk in _ahead(_shuffled(portions, key), threads):
            hashed = threads.submit(digest.update, chunk)
            file.write(chunk)
            hashed.result()
            size += len(chunk)

    records = sum(len(portion.lengths) for portion in portions)
    return ShardEntry(records, size, digest.hexdigest())


def random_bits(key: str, count: int) -> np.ndarray:
    """Returns random numbers that depend only on the arguments.

    Returns:
        uint64 [count]. Numbers of a counter-based generator.
    """
    digest = hashlib.sha256(key.encode()).digest()[:16]
    generator = np.random.Philox(key=int.from_bytes(digest, "little"))
    return generator.random_raw(count)


def permutation(key: str, count: int) -> np.ndarray:
    """Returns a random order of the numbers below `count`, int64 [count]."""
    return np.argsort(random_bits(key, count), kind="stable")


def _shuffled(portions: list[Portion], key: str) -> Iterator[bytes]:
    """Yields the frames of each bucket in random order, many at a time."""
    size = sum(portion.size for portion in portions)
    buckets = max(1, -(-size // BUCKET_BYTES))

    # End of each bucket in each portion.
    ends = np.zeros([buckets + 1, len(portions)], np.int64)
    for number, portion in enumerate(portions):
        bits = random_bits(f"{key}/{portion.name}", len(portion.lengths))
        chosen = (bits % np.uint64(buckets)).astype(np.int64)
        counts = np.bincount(chosen, minlength=buckets)
        ends[1:, number] = np.cumsum(counts)

    frames = memoryview(b"")
    for bucket in range(buckets):
        runs = list(
            zip(portions, ends[bucket].tolist(), ends[bucket + 1].tolist())
        )

        lengths = np.concatenate([x.lengths[a:b] for x, a, b in runs])
        stops = np.cumsum(lengths, dtype=np.int64)
        size = int(lengths.sum(dtype=np.int64))
        if size > len(frames):  # reused, as allocating clears memory
            frames = memoryview(bytearray(size + size // 8))

        # A bucket has consecutive records of each portion, read at once.
        done = 0
        for portion, first, last in runs:
            done += portion.read_into(frames[done:], first, last)

        # Frames are copied only once, when they are joined in random order.
        order = permutation(f"{key}/{bucket}", len(lengths))
        starts, stops = (stops - lengths)[order].tolist(), stops[order].tolist()
        for i in range(0, len(order), _AT_ONCE):
            ends_of = zip(starts[i : i + _AT_ONCE], stops[i : i + _AT_ONCE])
            yield b"".join([frames[a:b] for a, b in ends_of])


def _ahead(
    chunks: Iterator[bytes], executor: concurrent.futures.Executor
) -> Iterator[bytes]:
    """Yields chunks while a thread makes the next one."""
    following = executor.submit(next, chunks, None)
    while (chunk := following.result()) is not None:
        following = executor.submit(next, chunks, None)
        yield chunk
