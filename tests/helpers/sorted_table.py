"""Sorted tables, the format of a checkpoint's index, of any entries.

block: entries, starts of entries, their number; kind, masked CRC-32C
file: block of the entries, empty block, block that names the first, footer
"""

import struct

from common.formats import checksums

_MAGIC = 0xDB4775248B80FB57


def write(entries: list[tuple[bytes, bytes]]) -> bytes:
    """Content of a table, whatever its keys and values are."""
    content, handles = b"", []
    for block in (_block(entries), _block([])):
        handles.append(_varint(len(content)) + _varint(len(block)))
        content += _framed(block)
    last = max((key for key, _ in entries), default=b"") + b"\xff"
    block = _block([(last, handles[0])])
    index = _varint(len(content)) + _varint(len(block))
    footer = (handles[1] + index).ljust(40, b"\0")
    return content + _framed(block) + footer + struct.pack("<Q", _MAGIC)


def _block(entries: list[tuple[bytes, bytes]]) -> bytes:
    content, starts = b"", []
    for key, value in entries:
        starts.append(len(content))
        content += _varint(0) + _varint(len(key)) + _varint(len(value))
        content += key + value
    starts = starts or [0]
    return content + struct.pack(f"<{len(starts) + 1}I", *starts, len(starts))


def _framed(block: bytes) -> bytes:
    block += b"\0"  # not compressed
    return block + struct.pack("<I", checksums.masked_crc32c(block))


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])
