"""Encoding of whole batches of `tf.train.Example`s.

No TensorFlow is imported: the bytes are put together as arrays. An example is

    0a <features> (0a <entry> 0a <name> 12 <feature> 1a <list> 0a <values>)...

where <x> is the length of what follows and its content, and each integer of
the values is a varint: 7 bits in a byte, the lowest first, and the highest bit
of a byte says that another one follows.
"""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np

_TABLE_SIZE = 1 << 17  # integers whose varints are looked up


@dataclasses.dataclass(frozen=True)
class EncodedRecords:
    """Serialized `tf.train.Example`s back to back.

    Attributes:
        data: uint8 [bytes].
        ends: int64 [R], end of each record in `data`.
    """

    data: np.ndarray
    ends: np.ndarray

    def to_list(self) -> list[bytes]:
        """The records, one by one."""
        data, ends = self.data.tobytes(), self.ends.tolist()
        return [data[start:end] for start, end in zip([0, *ends], ends)]


def join(parts: list[EncodedRecords]) -> EncodedRecords:
    """Joins the records of several parts."""
    sizes = np.array([len(part.data) for part in parts], np.int64)
    starts = np.cumsum(sizes) - sizes
    nothing = EncodedRecords(np.zeros(0, np.uint8), np.zeros(0, np.int64))
    return EncodedRecords(
        np.concatenate([nothing.data, *(part.data for part in parts)]),
        np.concatenate(
            [nothing.ends, *(x.ends + s for x, s in zip(parts, starts))]
        ),
    )


def encode_examples(arrays: dict[str, np.ndarray]) -> EncodedRecords:
    """Serializes `tf.train.Example`s, with the features in the order given.

    Args:
        arrays: name -> integers or booleans [N, length], which become an
            `int64_list`, or floats [N, length], a `float_list`.

    Returns:
        N serialized examples.
    """
    # Columns of bytes, and which of them each record has; None: all of them.
    columns: list[tuple[np.ndarray, np.ndarray | None]] = []
    total: np.ndarray | int = 0
    for name, array in arrays.items():
        values, there = _values(array)
        sizes = np.full(len(values), values.shape[1])
        if there is not None:
            sizes = there.sum(axis=1)
        header = functools.partial(_feature_header, name, array.dtype.kind)
        headers, lengths = _headers(header, sizes)
        columns += [headers, (values, there)]
        total = total + lengths + sizes
    headers, lengths = _headers(_example_header, total)
    columns.insert(0, headers)
    width = sum(values.shape[1] for values, _ in columns)
    data = np.empty((len(total), width), np.uint8)
    kept = np.ones(data.shape, bool)
    start = 0
    for values, there in columns:
        stop = start + values.shape[1]
        data[:, start:stop] = values
        if there is not None:
            kept[:, start:stop] = there
        start = stop
    return EncodedRecords(
        np.compress(kept.ravel(), data.ravel()), np.cumsum(total + lengths)
    )


def _values(array: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Bytes of the values of a feature: varints, or floats of four bytes.

    Returns:
        (uint8 [N, bytes], bool [N, bytes]); only the bytes where the second
        one is true belong to a value. None: all bytes do.
    """
    if array.dtype.kind == "f":
        return np.ascontiguousarray(array, "<f4").view(np.uint8), None
    low, high = array.min(initial=0), array.max(initial=0)
    if low >= 0 and high < 128:
        return array.astype(np.uint8), None
    if low >= 0 and high < _TABLE_SIZE:
        encoded, there = (table.take(array) for table in _varint_table())
    else:
        encoded, there = _compute_varints(array, 10)
    count = len(array)
    return (
        encoded.view(np.uint8).reshape(count, -1),
        there.view(bool).reshape(count, -1),
    )


@functools.cache
def _varint_table() -> tuple[np.ndarray, np.ndarray]:
    """Varints of small integers, four bytes in an integer: uint32."""
    encoded, there = _compute_varints(np.arange(_TABLE_SIZE), 4)
    return encoded.view(np.uint32).ravel(), there.view(np.uint32).ravel()


def _compute_varints(
    values: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Varints of at most `width` bytes: (uint8, bool) [..., width]."""
    # Negative numbers are those of two's complement in 64 bits.
    unsigned = values.astype(np.int64).view(np.uint64)[..., None]
    rest = unsigned >> np.arange(0, 7 * width, 7, dtype=np.uint64)
    more = (rest > 127).astype(np.uint8) << 7
    there = rest > 0
    there[..., 0] = True
    return (rest & np.uint64(127)).astype(np.uint8) | more, there


def _headers(
    make: Callable[[int], bytes], sizes: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray | None], np.ndarray]:
    """Headers of contents of some sizes: `make(size)` for each record.

    Returns:
        ((uint8 [N, width], bool [N, width] or None), int64 [N]): bytes and
        which of them belong to a header, as in `_values`, and their number.
    """
    distinct, which = np.unique(sizes, return_inverse=True)
    headers = [make(size) for size in distinct.tolist()]
    lengths = np.array([len(header) for header in headers], np.int64)
    width = lengths.max(initial=0)
    padded = b"".join(header.ljust(width, b"\0") for header in headers)
    table = np.frombuffer(padded, np.uint8).reshape(len(headers), width)
    there = None
    if (lengths < width).any():
        there = (np.arange(width) < lengths[:, None])[which]
    return (table[which], there), lengths[which]


@functools.lru_cache(maxsize=1 << 16)
def _feature_header(name: str, kind: str, size: int) -> bytes:
    """Bytes before the values of a feature, which have `size` bytes."""
    key = name.encode()
    values = b"\x0a" + _varint(size)
    size += len(values)
    feature = (b"\x12" if kind == "f" else b"\x1a") + _varint(size)
    size += len(feature)
    entry = b"\x0a" + _varint(len(key)) + key + b"\x12" + _varint(size)
    size += len(entry)
    return b"\x0a" + _varint(size) + entry + feature + values


def _example_header(size: int) -> bytes:
    return b"\x0a" + _varint(size)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)
