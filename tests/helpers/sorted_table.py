"""Sorted tables, the format of a checkpoint's index, of any entries.

block: entries, starts of entries, their number; kind, masked CRC-32C
file: block of the entries, empty block, block that names the first, footer
"""

import struct

from common.formats import checksums

MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)


def write(entries: list[tuple[bytes, bytes]]) -> bytes:
    """Content of a table, whatever its keys and values are."""
    first = block([(0, *entry) for entry in entries])
    second = block([])
    last = max((key for key, _ in entries), default=b"") + b"\xff"
    third = block([(0, last, handle(0, first))])
    footer = handle(len(first), second)
    footer += handle(len(first) + len(second), third)
    return first + second + third + footer.ljust(40, b"\0") + MAGIC


def block(
    entries: list[tuple[int, bytes, bytes]], restarts: list[int] | None = None
) -> bytes:
    """A block of (shared, key, value), with its trailer.

    Args:
        entries: an entry has the first bytes that it shares with the one
            before in front of its key.
        restarts: offsets of entries that share nothing; None: of all.
    """
    content, starts = b"", []
    for shared, key, value in entries:
        starts.append(len(content))
        content += varint(shared) + varint(len(key)) + varint(len(value))
        content += key + value
    restarts = (starts or [0]) if restarts is None else restarts
    content += struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))
    return framed(content + b"\0")  # not compressed


def framed(content: bytes) -> bytes:
    """A block with its trailer; its last byte says how it is compressed."""
    return content + struct.pack("<I", checksums.masked_crc32c(content))


def handle(offset: int, content: bytes) -> bytes:
    """Offset and size of a block, without its trailer."""
    return varint(offset) + varint(len(content) - 5)


def varint(number: int) -> bytes:
    """A number in seven bits a byte."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])
