"""Check of a TFRecord file for damage."""

import math
import struct
from typing import Annotated

import google_crc32c
import msgspec

from bert.common import storage
from bert.common.formats import checksums
from bert.common.formats.json_files import Sha256

_HEADER, _FRAME = 12, 16  # bytes before the data, and around it
_BLOCK = 1 << 24  # bytes of a record that are read at once


class ShardEntry(msgspec.Struct, frozen=True):
    """What a manifest says of a shard.

    Attributes:
        records, bytes: number of records, and of bytes of the file.
        sha256: of the file, in hex.
    """

    records: Annotated[int, msgspec.Meta(ge=0)]
    bytes: Annotated[int, msgspec.Meta(ge=0)]
    sha256: Sha256


def check_shard(path: str, entry: ShardEntry | None) -> str | None:
    """Compares a shard with its manifest; locates damage if they differ.

    The records of a file without a manifest are always read.

    Args:
        path: the shard.
        entry: its entry in the manifest, or None.

    Returns:
        None if it is whole, else the damage, such as "record 37 at byte 2627:
        checksum of the data differs"; records are numbered from 0.

    Raises:
        OSError: the file cannot be opened.
    """
    # The size first: it costs nothing, while a hash reads the file.
    same_size = entry is not None and storage.size(path) == entry.bytes
    if same_size and storage.hash_file(path) == entry.sha256:
        return None

    # The hash tells that a file differs; its frames tell where.
    count, damage = scan(path)
    if damage:
        return damage
    if entry is None:
        return None if count else "no records"
    if count != entry.records:
        return f"{count} records instead of {entry.records}"
    return "not the records that were written (sha256 differs)"


def scan(path: str, longest: float = math.inf) -> tuple[int, str | None]:
    """Counts the whole records before the end or the damage.

    Args:
        path: a TFRecord file.
        longest: bytes of a record, at most.

    Returns:
        their number, and the damage as `check_shard` describes it, or None.
    """
    size, count, offset = storage.size(path), 0, 0
    with storage.open_file(path, "rb") as file:
        while offset < size:
            length, cause = _read_frame(file, size - offset, offset == 0)
            if length > longest:
                cause = f"more than {longest:,} bytes"
            if cause:
                return count, f"record {count} at byte {offset}: {cause}"
            count += 1
            offset += length + _FRAME
    return count, None


def is_text(header: bytes) -> bool:
    """Returns whether the first bytes of a file are text.

    The length of a record has zero bytes, the third byte of gzip is 8, and
    UTF-8 has no byte from 0xF5 on.
    """
    first = header[:8]
    return min(first, default=0) > 8 and max(first) < 0xF5


def _read_frame(file, left: int, is_first: bool) -> tuple[int, str | None]:
    """Reads a frame; returns the length of its record, and its damage.

    TensorFlow is not asked: a wrong length may end the process.
    """
    if left < _HEADER:
        return 0, f"only {left} bytes, too few for a record"

    # Length, 8 bytes; its checksum, 4; the data; their checksum, 4.
    header = file.read(_HEADER)
    length, checksum = struct.unpack("<QI", header)
    if checksums.masked_crc32c(header[:8]) != checksum:
        if is_first and header.startswith(b"\x1f\x8b"):
            return 0, "this is a gzip file"
        if is_first and is_text(header):
            return 0, "this is text, not TFRecords"
        other = ", or not a TFRecord file" if is_first else ""
        return 0, f"checksum of the length differs{other}"

    # A true length may still lie beyond the end of a truncated file.
    if left < length + _FRAME:
        return 0, "the file ends inside the record"

    # In blocks, as a record may be larger than memory.
    crc, data = 0, b""
    for start in range(0, length, _BLOCK):
        crc = google_crc32c.extend(crc, data)
        data = file.read(min(_BLOCK, length - start))
    (checksum,) = struct.unpack("<I", file.read(_FRAME - _HEADER))
    if checksums.masked_crc32c(data, crc) != checksum:
        return 0, "checksum of the data differs"
    return length, None
