"""Checksums of TFRecords and checkpoints (tensorflow/core/lib/hash)."""

import google_crc32c
import numpy as np


def masked_crc32c(data: bytes, crc: int = 0) -> int:
    """Returns the masked CRC-32C of some bytes.

    Args:
        data: bytes. The data.
        crc: int. `google_crc32c.value` of the preceding bytes. Default: 0.
    """
    found = np.array([google_crc32c.extend(crc, data)], np.uint32)
    return int(mask(found)[0])


def mask(crcs: np.ndarray) -> np.ndarray:
    """Masks CRC-32Cs, uint32, as they are stored in the files."""
    rotated = crcs >> np.uint32(15) | crcs << np.uint32(17)
    return rotated + np.uint32(0xA282EAD8)
