"""Random numbers that are a function of a key and of a position.

The generator is Philox 4x64 (Salmon et al. 2011): it turns a key and a counter
into random bits, so that the numbers of any row can be drawn alone.
"""

import hashlib

import numpy as np

_PER_COUNT = 4  # words that one value of the counter gives


def generator(*key: int | str) -> np.random.Generator:
    """A generator whose numbers depend on the key alone."""
    return np.random.Generator(_philox(key))


def rows(
    key: tuple[int | str, ...], first: int, count: int, columns: int
) -> np.ndarray:
    """Draws the numbers of some rows.

    Args:
        key: which table of random numbers.
        first: number of the first row.
        count: N, number of rows.
        columns: number of columns of the table.

    Returns:
        uint32 [N, columns].
    """
    # A value of the counter gives 8 numbers of 32 bits.
    counts = -(-columns // (2 * _PER_COUNT))

    # The rows before are skipped, not drawn.
    bits = _philox(key)
    bits.advance(first * counts)
    words = bits.random_raw(count * counts * _PER_COUNT)
    drawn = words.view(np.uint32).reshape(count, counts * 2 * _PER_COUNT)
    return drawn[:, :columns]


def _philox(key: tuple[int | str, ...]) -> np.random.Philox:
    text = "/".join(map(str, key)).encode()
    digest = hashlib.blake2b(text, digest_size=16).digest()
    return np.random.Philox(key=int.from_bytes(digest, "little"))
