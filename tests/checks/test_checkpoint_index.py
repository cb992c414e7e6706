"""Indexes that TensorFlow would end the process at, by their own protos.

block: entries, starts of entries, their number; kind, masked CRC-32C
file: block of the entries, block that names it, footer
"""

import re
import struct

import pytest
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import tensor_bundle_pb2

from bert.checks import checkpoint_index
from bert.common.formats import checksums

MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
NAME = b"bert/embeddings/word_embeddings"
FLOAT, STRING = types_pb2.DT_FLOAT, types_pb2.DT_STRING


def varint(number: int) -> bytes:
    """A number in seven bits a byte."""
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def framed(content: bytes) -> bytes:
    """A block with its trailer; its last byte says how it is compressed."""
    return content + struct.pack("<I", checksums.masked_crc32c(content))


def block(entries: list[tuple[int, bytes, bytes]], restarts=(0,)) -> bytes:
    """A block of (number of bytes shared with the key before, key, value)."""
    content = b""
    for shared, key, value in entries:
        content += varint(shared) + varint(len(key)) + varint(len(value))
        content += key + value
    content += struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))
    return framed(content + b"\0")  # not compressed


def table(first: bytes, handle: bytes | None = None, end=MAGIC) -> bytes:
    """A table of one block; `handle` replaces that of the block."""
    second = handle or varint(0) + varint(len(first) - 5)
    second = block([(0, b"z", second)])
    footer = varint(0) * 2 + varint(len(first)) + varint(len(second) - 5)
    return first + second + footer.ljust(40, b"\0") + end


def header(**changed) -> bytes:
    values = {"num_shards": 1, **changed}
    return tensor_bundle_pb2.BundleHeaderProto(**values).SerializeToString()


def entry(dims=(1,), kind=FLOAT, size=4, slices=(), unknown=False, **more):
    proto = tensor_bundle_pb2.BundleEntryProto(dtype=kind, size=size, **more)
    for dim in dims:
        proto.shape.dim.add(size=dim)
    proto.shape.unknown_rank = unknown
    for start, length in slices:
        proto.slices.add().extent.add(start=start, length=length)
    return proto.SerializeToString()


def index(value: bytes, key: bytes = NAME, **changed) -> bytes:
    return table(block([(0, b"", header(**changed)), (0, key, value)]))


def of(*entries: tuple, restarts=(0,)) -> bytes:
    return table(block([(0, b"", header()), *entries], restarts))


HEAD = block([(0, b"", header())])
TWO = [(0, name, entry((13,), size=52)) for name in (b"a", b"b")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (index(entry((-1,))), "has the shape [-1]"),
        (index(entry((2**33, 2**33))), "the data files have 97"),
        (index(entry((2**62, 2**62, 0), size=0)), "more than memory holds"),
        (index(entry((1,) * 300)), "has the shape"),
        (index(entry((), unknown=True)), "has the shape []"),
        (index(entry(kind=0)), "has the type DT_INVALID"),
        (index(entry(kind=99)), "has the type 99"),
        (index(entry(kind=types_pb2.DT_VARIANT)), "has the type DT_VARIANT"),
        (index(entry((10**9,), STRING)), "has 1,000,000,000 strings in 4 by"),
        (index(entry((2,), STRING, 25)), "bytes of strings in 25"),
        (index(entry((7,), STRING, 64)), "a number that does not end"),
        (index(entry((2,))), "4 bytes of DT_FLOAT"),
        (index(entry(offset=-8)), "ends at byte -4"),
        (index(entry(offset=2**60)), "ends at byte 1152"),
        (index(entry(size=-4)), "ends at byte -4"),
        (of(*TWO), "the index lists tensors of 104 bytes; the data files have"),
        (index(entry(shard_id=7)), "is in data file 7"),
        (index(entry(), num_shards=2), "No such file"),
        (index(entry(), num_shards=10**9), "no known format"),
        (index(entry(), endianness=1), "no known format"),
        (index(entry((2,), size=0, slices=[(1, 2)])), "a slice outside of its"),
        (index(entry((2, 2), size=0, slices=[(0, 1)])), "a slice outside of"),
        (
            index(entry((2**40,) * 2, size=0, slices=[(0, 1), (0, 1)])),
            "more than memory holds",
        ),
        (index(b"\xff\xff\xff"), "other data than tensors"),
        (table(block([(0, b"", b"\xff\xff")])), "other data than tensors"),
        (index(entry(), b"a\xff"), "no name in UTF-8"),
        (of((0, b"b", entry()), (0, b"a", entry())), "keys of the index are"),
        (of((9, b"a", entry())), "an entry outside of its block"),
        # A value of nine bytes in a block that ends after eight.
        (
            table(framed(b"\0\0\x09" + struct.pack("<2I", 0, 1) + b"\0")),
            "an entry outside of its block",
        ),
        (of((0, b"a", entry()), restarts=(0, 999)), "has other restarts"),
        (of((0, b"a", entry()), restarts=()), "no restarts"),
        (
            table(HEAD, varint(2**40) + varint(9)),
            "a block outside of the index",
        ),
        (table(HEAD, varint(0) + varint(2**63)), "a block outside of the in"),
        (table(HEAD, b"\xff"), "a number that does not end"),
        (table(HEAD, end=b"PK345678"), "not an index of a checkpoint"),
        (index(entry())[:-9], "not an index of a checkpoint"),
        (index(entry()).replace(NAME, NAME.upper()), "the checksum of a block"),
        (table(framed(HEAD[:-5] + b"\1")), "the index is compressed"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_harmful_index_is_rejected(tmp_path, content, message):
    (tmp_path / "x.index").write_bytes(content)
    data = b"\xff" * 64 if "end" in message else b"\xff" * 9 + b"\1" + bytes(87)
    (tmp_path / "x.data-00000-of-00001").write_bytes(data)
    with pytest.raises((ValueError, OSError), match=re.escape(message)):
        checkpoint_index.check(str(tmp_path / "x"))
