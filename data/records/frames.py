"""Frames of records, as TFRecord files have them.

length  uint64, little-endian
its checksum  uint32    masked CRC-32C
data
its checksum  uint32
"""

from collections.abc import Iterable

import google_crc32c
import numpy as np

from common.formats import checksums

_HEADER = np.dtype([("length", "<u8"), ("checksum", "<u4")])


def frame(records: list[bytes]) -> list[bytes]:
    """Frames records as TFRecord files have them.

    Args:
        records: N serialized records.

    Returns:
        N frames.
    """
    lengths, kinds = np.unique(
        np.array([len(record) for record in records], np.uint64),
        return_inverse=True,
    )
    headers = np.empty(len(lengths), _HEADER)
    headers["length"] = lengths
    headers["checksum"] = checksums.mask(
        _checksums(x.tobytes() for x in lengths)
    )
    starts = [header.tobytes() for header in headers]
    footers = checksums.mask(_checksums(records)).astype("<u4").tobytes()
    return [
        b"".join((starts[kind], record, footers[4 * i : 4 * i + 4]))
        for i, (kind, record) in enumerate(zip(kinds.tolist(), records))
    ]


def _checksums(contents: Iterable[bytes]) -> np.ndarray:
    return np.array([google_crc32c.value(x) for x in contents], np.uint32)
