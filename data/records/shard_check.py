"""Check of a TFRecord file for damage.

A record's frame, little-endian:

length  uint64
its checksum  uint32    masked CRC-32C
data
its checksum  uint32
"""

import struct

from common import storage
from common.storage import sync_and_hash

_HEADER, _FRAME = 12, 16  # bytes before the data, and around it
_CASTAGNOLI = 0x82F63B78  # the polynomial of CRC-32C, reflected


def check_shard(path: str, entry: dict | None) -> str | None:
    """Compares a shard with its manifest; locates damage if they differ.

    The records of a file without a manifest are always read, at most 1,024 at
    a time.

    Args:
        path: the shard.
        entry: its `{"records", "bytes", "sha256"}` in the manifest, or None.

    Returns:
        None if it is whole, else the damage, such as "record 37 at byte 2627:
        checksum of the data differs"; records are numbered from 0.

    Raises:
        OSError: the file cannot be opened.
    """
    size = storage.size(path)
    same_size = entry is not None and size == entry["bytes"]
    if same_size and sync_and_hash(path) == entry["sha256"]:
        return None
    count, damage = _scan(path, size)
    if damage:
        return damage
    if entry is None:
        return None if count else "no records"
    if count != entry["records"]:
        return f"{count} records instead of {entry['records']}"
    return "not the records that were written (sha256 differs)"


def _scan(path: str, size: int) -> tuple[int, str | None]:
    """Number of whole records before the end or the damage, and the damage."""
    import tensorflow as tf

    from data.records import pipelines

    count = offset = 0
    for batch_size in (1024, 1):  # a batch that fails is read record by record
        try:
            dataset = (
                tf.data.TFRecordDataset(path).skip(count).batch(batch_size)
            )
            dataset = pipelines.without_autotuning(dataset)
            for records in dataset:
                count += len(records)
                offset += sum(_FRAME + len(x) for x in records.numpy())
        except tf.errors.OpError:
            continue
    # TensorFlow does not report a file that ends inside a header.
    if offset == size:
        return count, None
    cause = _cause(path, offset, size)
    return count, f"record {count} at byte {offset}: {cause}"


def _cause(path: str, offset: int, size: int) -> str:
    """Why the frame at `offset` cannot be read; TensorFlow reports less."""
    left = size - offset
    if left < _HEADER:
        return f"only {left} bytes, too few for a record"
    with storage.open_file(path, "rb") as file:
        file.seek(offset)
        header = file.read(_HEADER)
    length, checksum = struct.unpack("<QI", header)
    if _masked_crc32c(header[:8]) != checksum:
        if offset == 0 and header.startswith(b"\x1f\x8b"):
            return "this is a gzip file"
        other = ", or not a TFRecord file" if offset == 0 else ""
        return f"checksum of the length differs{other}"
    if left < length + _FRAME:
        return "the file ends inside the record"
    return "checksum of the data differs"


def _masked_crc32c(data: bytes) -> int:
    """The checksum of TFRecord files (tensorflow/core/lib/hash/crc32c.h)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (_CASTAGNOLI if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
