"""The index of a checkpoint, checked before TensorFlow reads it.

TensorFlow ends the process at some wrong shapes, numbers and types of a file
that was made to harm.

    block ...        entries: shared, added and value length, key, value;
                     offsets of restarts; type 0, masked CRC-32C
    index block      last key of a block -> handle: offset and size
    footer           handles of the metaindex and the index block, magic number

The key "" has the header, each other one a tensor; a key that starts with NUL
has a slice of one.
"""

import math
import struct
from collections.abc import Iterator

from google.protobuf import message
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import tensor_bundle_pb2

from bert.common import storage
from bert.common.formats import checksums

_LARGEST = 1 << 26  # bytes of an index: BERT-large with Adam has 100,000
_FOOTER, _TRAILER = 48, 5
_MAGIC = 0xDB4775248B80FB57
_MOST_STRINGS = 1 << 20  # of a tensor
_MOST_AXES = 254
_SLICE = b"\0"
_SIZES = {  # bytes of a value
    "DT_FLOAT": 4,
    "DT_DOUBLE": 8,
    "DT_HALF": 2,
    "DT_BFLOAT16": 2,
    "DT_BOOL": 1,
    "DT_INT8": 1,
    "DT_INT16": 2,
    "DT_INT32": 4,
    "DT_INT64": 8,
    "DT_UINT8": 1,
    "DT_UINT16": 2,
    "DT_UINT32": 4,
    "DT_UINT64": 8,
    "DT_STRING": None,
}


def check(prefix: str) -> None:
    """Checks each entry of an index against the files of its data.

    Args:
        prefix: prefix of the checkpoint's files.

    Raises:
        ValueError: the index is damaged, or does not fit the data.
        OSError: a file cannot be read.
    """
    with storage.open_file(f"{prefix}.index", "rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError(f"an index of more than {_LARGEST:,} bytes")
    entries = dict(_entries(content))
    try:
        header = tensor_bundle_pb2.BundleHeaderProto.FromString(
            entries.pop(b"", b"\x08\0")
        )
        tensors = {
            key: tensor_bundle_pb2.BundleEntryProto.FromString(value)
            for key, value in entries.items()
        }
    except message.DecodeError:
        raise ValueError("the index has other data than tensors") from None
    if header.endianness or not 1 <= header.num_shards <= 99_999:
        raise ValueError("the header of the index has no known format")
    files = [
        f"{prefix}.data-{i:05}-of-{header.num_shards:05}"
        for i in sorted({entry.shard_id for entry in tensors.values()})
        if 0 <= i < header.num_shards
    ]
    sizes = {
        int(path.rsplit("-", 3)[1]): storage.size(storage.regular(path))
        for path in files
    }
    for key, entry in tensors.items():
        try:
            name = ascii(key.decode())[1:-1] if key[:1] != _SLICE else "a slice"
        except UnicodeDecodeError:
            raise ValueError(f"{key!r:.80} is no name in UTF-8") from None
        wrong = _mistake(entry, sizes.get(entry.shard_id))
        if wrong is None and entry.dtype == types_pb2.DT_STRING:
            shard = f"{entry.shard_id:05}-of-{header.num_shards:05}"
            path = f"{prefix}.data-{shard}"
            with storage.open_file(path, "rb") as file:
                file.seek(entry.offset)
                wrong = _wrong_strings(entry, file)
        if wrong:
            raise ValueError(f"{name:.80} {wrong}")
    _check_total(tensors, sum(sizes.values()))


def _check_total(tensors: dict, held: int) -> None:
    """Compares the size of all tensors, which may overlap, with the data."""
    listed = {}
    for key, entry in tensors.items():
        if key[:1] != _SLICE:
            dims = [dim.size for dim in entry.shape.dim]
            listed[key] = math.prod(dims) * (_SIZES[_kind(entry)] or 1), dims
    total = sum(size for size, _ in listed.values())
    if total > held:
        key = max(listed, key=listed.get)
        raise ValueError(
            f"{key.decode()} {listed[key][1]}: the index lists tensors of "
            f"{total:,} bytes; the data files have {held:,}"
        )


def _kind(entry) -> str:
    """Name of the type of a tensor, or its number."""
    kinds = types_pb2.DataType.DESCRIPTOR.values_by_number
    return kinds[entry.dtype].name if entry.dtype in kinds else str(entry.dtype)


def _mistake(entry, data_size: int | None) -> str | None:
    """Describes a mistake of a tensor's entry, if it has any.

    Args:
        entry: the proto.
        data_size: bytes of the file of its data; None if there is none.
    """
    dims = [dim.size for dim in entry.shape.dim]
    known = not entry.shape.unknown_rank and len(dims) <= _MOST_AXES
    if not known or min(dims, default=0) < 0:
        return f"has the shape {dims!s:.80}"
    count = math.prod(dims)
    if math.prod(max(dim, 1) for dim in dims) >= 1 << 63 and (
        entry.slices or not count
    ):
        return f"has the shape {dims!s:.80}, more than memory holds"
    kind = _kind(entry)
    if kind not in _SIZES:
        return f"has the type {kind}, which no BERT needs"
    for part in entry.slices:
        if len(part.extent) != len(dims) or any(
            x.start < 0 or x.length < 0 or x.start + x.length > dim
            for x, dim in zip(part.extent, dims)
        ):
            return "has a slice outside of its shape"
    if entry.slices:
        return None  # the slices have entries of their own
    if data_size is None:
        return f"is in data file {entry.shard_id}, which does not exist"
    size = _SIZES[kind]
    if size is None and count > min(entry.size, _MOST_STRINGS):
        return f"has {count:,} strings in {entry.size:,} bytes"
    if size is not None and count * size > data_size:
        return (
            f"{dims!s:.80}: a tensor of {count * size:,} bytes; the data "
            f"files have {data_size:,}"
        )
    end = entry.offset + entry.size
    if min(entry.offset, entry.size) < 0 or end > data_size:
        return f"ends at byte {end}; the data files have {data_size:,}"
    if size is not None and count * size != entry.size:
        return f"{dims!s:.80}: {entry.size:,} bytes of {kind}"
    return None


def _wrong_strings(entry, file) -> str | None:
    """Compares the lengths of strings with the bytes that they have."""
    count = math.prod(dim.size for dim in entry.shape.dim)
    data = file.read(min(entry.size, 10 * count))
    end, total = 0, 0
    for _ in range(count):
        length, end = _varint(data, end)
        total += length
    if end + 4 + total != entry.size:
        return f"has {total:,} bytes of strings in {entry.size:,}"
    return None


def _entries(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yields the keys and values of a table; checks their order."""
    if len(content) < _FOOTER or content[-8:] != struct.pack("<Q", _MAGIC):
        raise ValueError("not an index of a checkpoint, or its end is missing")
    limit = len(content) - _FOOTER
    footer = content[limit:]
    _, _, end = _handle(footer, 0)
    offset, size, _ = _handle(footer, end)
    last = None
    for _, value in _block(content, offset, size, limit):
        offset, size, _ = _handle(value, 0)
        for key, found in _block(content, offset, size, limit):
            if last is not None and key <= last:
                raise ValueError("the keys of the index are not in order")
            yield key, found
            last = key


def _block(
    content: bytes, offset: int, size: int, limit: int
) -> Iterator[tuple[bytes, bytes]]:
    """Yields the keys and values of a block."""
    end = offset + size
    if end + _TRAILER > limit or size < 4:
        raise ValueError("a block outside of the index")
    kind, checksum = struct.unpack_from("<BI", content, end)
    if checksums.masked_crc32c(content[offset : end + 1]) != checksum:
        raise ValueError("the checksum of a block of the index differs")
    if kind:
        raise ValueError("the index is compressed")
    data = content[offset:end]
    (restarts,) = struct.unpack_from("<I", data, size - 4)
    size -= 4 + 4 * restarts
    if size < 0 or not restarts:
        raise ValueError("a block of the index has no restarts")
    starts = set(struct.unpack_from(f"<{restarts}I", data, size))
    position, key, found = 0, b"", {0}
    while position < size:
        found.add(position)
        is_start = position in starts
        shared, position = _varint(data, position)
        added, position = _varint(data, position)
        length, position = _varint(data, position)
        middle, stop = position + added, position + added + length
        if shared > len(key) or stop > size or (is_start and shared):
            raise ValueError("an entry outside of its block of the index")
        key = key[:shared] + data[position:middle]
        yield key, data[middle:stop]
        position = stop
    if not found.issuperset(starts):
        raise ValueError("a block of the index has other restarts")


def _handle(data: bytes, position: int) -> tuple[int, int, int]:
    """Reads offset and size of a block; returns them and the end."""
    offset, position = _varint(data, position)
    size, position = _varint(data, position)
    return offset, size, position


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Reads a number; returns it and its end."""
    value = shift = 0
    while position < len(data) and shift < 64:
        byte = data[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position
    raise ValueError("a number that does not end")
