"""Checks TFRecord files for damage."""

import math
import struct
from typing import Annotated

import google_crc32c
import msgspec

from bert.common import storage
from bert.common.formats import checksums
from bert.common.formats.json_files import Sha256

_HEADER, _FRAME = 12, 16  # bytes before the data, and around it
_BLOCK = 1 << 24  # bytes that are read at once


class ShardEntry(msgspec.Struct, frozen=True):
    """Entry of a shard in a manifest.

    Attributes:
        records: int. Number of records.
        bytes: int. Size of the file.
        sha256: str. Hash of the file, in hex.
    """

    records: Annotated[int, msgspec.Meta(ge=0)]
    bytes: Annotated[int, msgspec.Meta(ge=0)]
    sha256: Sha256


def check_shard(path: str, entry: ShardEntry | None) -> str | None:
    """Compares a shard with its manifest; locates damage if they differ.

    The records of a file without a manifest are always read.

    Args:
        path: str. The shard.
        entry: ShardEntry or None. Its entry in the manifest, if it has one.

    Returns:
        str or None. The damage, such as "record 37 at byte 2627: checksum of
        the data differs", with records numbered from 0. None: no damage.

    Raises:
        OSError: The file cannot be opened.
    """
    # The size is compared first, as hashing reads the whole file.
    if (
        entry is not None
        and storage.size(path) == entry.bytes
        and storage.hash_file(path) == entry.sha256
    ):
        return None

    # If the hash differs, the damage is located by reading the frames.
    count, damage = scan(path)
    if damage:
        return damage
    if entry is None:
        return None if count else "no records"
    if count != entry.records:
        return f"{count} records instead of {entry.records}"
    return "not the records that were written (sha256 differs)"


def scan(path: str, longest: float = math.inf) -> tuple[int, str | None]:
    """Counts the undamaged records before the end or the first damage.

    Args:
        path: str. A TFRecord file.
        longest: float. Maximum number of bytes of a record.

    Returns:
        (int, str or None). Number of records, and the damage as in
        `check_shard`.
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
    UTF-8 does not use the bytes from 0xF5 on.
    """
    first = header[:8]
    return min(first, default=0) > 8 and max(first) < 0xF5


def _read_frame(file, left: int, is_first: bool) -> tuple[int, str | None]:
    """Reads a frame; returns the length of its record, and its damage.

    TensorFlow is not used, as a wrong length may abort the process.
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

    # A truncated file may end before the end of the record.
    if left < length + _FRAME:
        return 0, "the file ends inside the record"

    # The data is read in blocks, as it may be larger than memory.
    crc, data = 0, b""
    for start in range(0, length, _BLOCK):
        crc = google_crc32c.extend(crc, data)
        data = file.read(min(_BLOCK, length - start))
    (checksum,) = struct.unpack("<I", file.read(_FRAME - _HEADER))
    if checksums.masked_crc32c(data, crc) != checksum:
        return 0, "checksum of the data differs"
    return length, None
