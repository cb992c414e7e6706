"""Encodes whole batches of `tf.train.Example`s, without TensorFlow.

The bytes are assembled as arrays. An example is

    0a <features> (0a <entry> 0a <name> 12 <feature> 1a <list> 0a <values>)...

where <x> is the length of its content, followed by the content. Integers are
varints: 7 bits per byte, lowest bits first. The highest bit of a byte is set
if another byte follows.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable

import numpy as np

_TABLE_SIZE = 1 << 17  # number of integers whose varints are in a table


@dataclasses.dataclass(frozen=True)
class Feature:
    """One feature of a record.

    Attributes:
        dtype: str. "int64" or "float32".
        sequence: bool. Whether it has one value per token, padded with 0.
        size: int. Number of values, if not `sequence`.
    """

    dtype: str = "int64"
    sequence: bool = False
    size: int = 1


RecordSchema = dict[str, Feature]


def encode_examples(arrays: dict[str, np.ndarray]) -> list[bytes]:
    """Serializes `tf.train.Example`s, with the features in the order given.

    Args:
        arrays: dict. Name -> array [N, length]. Integers and booleans are
            encoded as `int64_list`, floats as `float_list`.

    Returns:
        list of bytes. N serialized examples.
    """
    # Parts of every record; adjacent columns of fixed width are one part.
    parts: list[Iterable[bytes]] = []
    columns: list[np.ndarray] = []
    total: np.ndarray | int = 0
    for name, array in arrays.items():
        count, length = array.shape
        header = functools.partial(_feature_header, name, array.dtype.kind)
        fixed = _fixed_values(array)
        if fixed is not None:
            start = np.frombuffer(header(fixed.shape[1]), np.uint8)
            columns += [np.broadcast_to(start, (count, len(start))), fixed]
            total = total + len(start) + fixed.shape[1]
            continue

        # Trailing zeros, usually padding, are not encoded as varints.
        values, sizes, zeros = _varints(array)
        headers, lengths = _headers(header, sizes + zeros)
        padding = [bytes(n) for n in range(length + 1)]
        parts += [*_rows(columns), headers, values]
        parts.append(map(padding.__getitem__, zeros.tolist()))

        columns = []
        total = total + lengths + sizes + zeros

    parts += _rows(columns)
    headers, _ = _headers(_example_header, np.broadcast_to(total, count))
    return list(map(b"".join, zip(headers, *parts)))


def _fixed_values(array: np.ndarray) -> np.ndarray | None:
    """Returns uint8 [N, bytes] if all values have the same size, else None."""
    if array.dtype.kind == "f":
        return np.ascontiguousarray(array, "<f4").view(np.uint8)
    if array.min(initial=0) >= 0 and array.max(initial=0) < 128:
        return array.astype(np.uint8)
    return None


def _rows(columns: list[np.ndarray]) -> list[list[bytes]]:
    """Joins columns, uint8 [N, any], to one part; [] without columns."""
    if not columns:
        return []
    table = np.hstack(columns)
    return [_split(table, np.full(len(table), table.shape[1]))]


def _split(data: np.ndarray, sizes: np.ndarray) -> list[bytes]:
    """Splits uint8 bytes into parts of the given sizes."""
    content, ends = data.tobytes(), np.cumsum(sizes).tolist()
    return [content[start:end] for start, end in zip([0, *ends], ends)]


def _varints(
    array: np.ndarray,
) -> tuple[list[bytes], np.ndarray, np.ndarray]:
    """Encodes each row up to its last value that is not zero.

    Returns:
        The bytes of each row, their number, and the number of trailing zeros,
        which need one byte each: int64 [N].
    """
    count, length = array.shape
    zeros = np.argmax(array[:, ::-1] != 0, axis=1)
    values = array[np.arange(length) < (length - zeros)[:, None]]

    low, high = array.min(initial=0), array.max(initial=0)
    if low >= 0 and high < _TABLE_SIZE:
        encoded, there, size = (table.take(values) for table in _varint_table())
    else:
        encoded, there = _compute_varints(values, 10)
        size = there.sum(axis=1, dtype=np.uint8)

    kept = there.view(bool).ravel()
    data = np.compress(kept, encoded.view(np.uint8).ravel())
    firsts = np.cumsum(length - zeros) - (length - zeros)
    sizes = np.add.reduceat(size, firsts, dtype=np.int64) if count else firsts
    return _split(data, sizes), sizes, zeros


@functools.cache
def _varint_table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns varints of small integers, packed into uint32, and sizes."""
    encoded, there = _compute_varints(np.arange(_TABLE_SIZE), 4)
    sizes = there.sum(axis=1, dtype=np.uint8)
    return encoded.view(np.uint32).ravel(), there.view(np.uint32).ravel(), sizes


def _compute_varints(
    values: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns varints of at most `width` bytes: (uint8, bool) [..., width]."""
    # Negative numbers are encoded in two's complement with 64 bits.
    unsigned = values.astype(np.int64).view(np.uint64)[..., None]
    rest = unsigned >> np.arange(0, 7 * width, 7, dtype=np.uint64)
    more = (rest > 127).astype(np.uint8) << 7
    there = rest > 0
    there[..., 0] = True
    return (rest & np.uint64(127)).astype(np.uint8) | more, there


def _headers(
    make: Callable[[int], bytes], sizes: np.ndarray
) -> tuple[list[bytes], np.ndarray]:
    """Returns headers for contents of the given sizes; lengths, int64 [N]."""
    distinct, which = np.unique(sizes, return_inverse=True)
    headers = [make(size) for size in distinct.tolist()]
    lengths = np.array([len(header) for header in headers], np.int64)
    return [headers[i] for i in which.tolist()], lengths[which]


@functools.lru_cache(maxsize=1 << 16)
def _feature_header(name: str, kind: str, size: int) -> bytes:
    """Returns the bytes before the `size` bytes of a feature's values."""
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
    encoded, there = _compute_varints(np.array(value), 10)
    return encoded[there].tobytes()
