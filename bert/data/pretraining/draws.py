"""Random numbers that depend only on a key and a position.

The generator is Philox 4x64 (Salmon et al. 2011). It maps a key and a counter
to random bits, so that any row can be drawn without the rows before it.
"""

import hashlib

import numpy as np

_PER_COUNT = 4  # 64-bit words per value of the counter


def generator(*key: int | str) -> np.random.Generator:
    """Returns a generator whose numbers depend only on the key."""
    return np.random.Generator(_philox(key))


def rows(
    key: tuple[int | str, ...], first: int, count: int, columns: int
) -> np.ndarray:
    """Draws consecutive rows of a table of random numbers.

    Args:
        key: tuple of int and str. Identifies the table.
        first: int. Index of the first row.
        count: int. N, number of rows.
        columns: int. Number of columns of the table.

    Returns:
        uint32 [N, columns].
    """
    # A value of the counter gives 8 numbers of 32 bits.
    counts = -(-columns // (2 * _PER_COUNT))

    # The previous rows are skipped without drawing them.
    bits = _philox(key)
    bits.advance(first * counts)
    words = bits.random_raw(count * counts * _PER_COUNT)
    drawn = words.view(np.uint32).reshape(count, counts * 2 * _PER_COUNT)
    return drawn[:, :columns]


def _philox(key: tuple[int | str, ...]) -> np.random.Philox:
    text = "/".join(map(str, key)).encode()
    digest = hashlib.blake2b(text, digest_size=16).digest()
    return np.random.Philox(key=int.from_bytes(digest, "little"))
