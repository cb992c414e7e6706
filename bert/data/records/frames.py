"""The frames of records in TFRecord files.

length    uint64, little-endian
checksum  uint32, masked CRC-32C of the length
data
checksum  uint32, masked CRC-32C of the data
"""

import google_crc32c
import numpy as np

from bert.common.formats import checksums

# The footer of a frame and the header of the next one, which are adjacent.
_BETWEEN = np.dtype([("footer", "<u4"), ("length", "<u8"), ("checksum", "<u4")])
_FOOTER = 4  # bytes
OVERHEAD = _BETWEEN.itemsize  # bytes of a frame besides its record


def join(records: list[bytes], before: bytes = b"") -> bytes:
    """Encodes records as the content of a TFRecord file.

    Args:
        records: list of bytes. Serialized records.
        before: bytes. Bytes to insert before the frames. Default: none.

    Returns:
        bytes. The concatenated frames.
    """
    if not records:
        return before

    # Records have few distinct lengths, and each is hashed once.
    count = len(records)
    sizes = np.fromiter(map(len, records), np.uint64, count)
    lengths, kinds = np.unique(sizes, return_inverse=True)

    between = np.zeros(count + 1, _BETWEEN)
    between["length"][:-1] = sizes
    between["checksum"][:-1] = _checksums([x.tobytes() for x in lengths])[kinds]
    between["footer"][1:] = _checksums(records)

    raw, size = between.tobytes(), _BETWEEN.itemsize
    chunks = [b""] * (2 * count + 1)
    chunks[0] = before + raw[_FOOTER:size]
    chunks[1::2] = records
    chunks[2::2] = [raw[i : i + size] for i in range(size, len(raw), size)]
    chunks[-1] = chunks[-1][:_FOOTER]
    return b"".join(chunks)


def _checksums(contents: list[bytes]) -> np.ndarray:
    values = map(google_crc32c.value, contents)
    return checksums.mask(np.fromiter(values, np.uint32, len(contents)))
