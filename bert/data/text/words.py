"""Splits text into words with character offsets.

    text     In "New York", he said.
    words    In | " | New | York | " | , | he | said | .

Punctuation marks at both ends of a run without white space are separate words.
Marks inside a run are kept: U.S, AT&T, O'Brien. Each ideograph is a word.
Characters without a width, such as U+200B and U+FEFF, are in no word, unless
they are inside one. Text that is already split into words is split at white
space only.
"""

import functools

import numpy as np

from bert.data.text import tokenization
from bert.data.text import unicode_tables as tables

_INNER, _SPACE, _MARK, _ALONE, _INVISIBLE = range(5)
_ASCII_SPACE = " \t\n\v\f\r"
_WITHOUT_WIDTH = [  # the tokenizer removes them
    *(0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F)),
    *(*range(0x2060, 0x2065), *range(0x2066, 0x2070), 0xFEFF),
]


@functools.cache
def _classes(by_words: bool) -> np.ndarray:
    """Returns the class of each code point: uint8 [0x110000]."""
    if by_words:
        classes = np.full(tables.CODE_POINTS, _INNER, np.uint8)
        classes[[ord(character) for character in _ASCII_SPACE]] = _SPACE
        return classes

    kinds = tables.entries(False, False) & tables.KIND
    classes = np.full(len(kinds), _INNER, np.uint8)
    classes[kinds == tables.SPACE] = _SPACE
    for code in np.flatnonzero(kinds == tables.ALONE).tolist():
        marks = tokenization.is_punctuation(chr(code))
        classes[code] = _MARK if marks else _ALONE
    classes[_WITHOUT_WIDTH] = _INVISIBLE
    return classes


def split(text: str, by_words: bool = False) -> list[tuple[int, int]]:
    """Splits a text into words.

    Args:
        text: str. The text.
        by_words: bool. Whether the text is already split into words. Default:
            False.

    Returns:
        list of (int, int). The first character of each word, and the character
        after its last.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    if not codes.size:
        return []
    classes = _classes(by_words)[codes]
    positions = np.arange(len(codes))

    # A run has no white space, and each ideograph begins a run.
    inside, alone = classes != _SPACE, classes == _ALONE
    apart = ~_before(inside) | alone | _before(alone)
    runs = np.cumsum(inside & apart) - 1

    # The core of a run is from its first to its last character that is neither
    # a punctuation mark nor invisible. Each mark outside the core is a word.
    cores = np.flatnonzero(inside & (classes == _INNER))
    first = np.full(len(codes), len(codes))
    last = np.full(len(codes), -1)
    np.minimum.at(first, runs[cores], cores)
    np.maximum.at(last, runs[cores], cores)
    middle = (first[runs] < positions) & (positions <= last[runs])

    # White space before the first run has the number -1, but is not a word.
    inside &= middle | (classes != _INVISIBLE)
    begins = inside & ~middle
    starts = np.flatnonzero(begins)
    ends = np.zeros(len(starts), int)
    words = np.cumsum(begins) - 1
    np.maximum.at(ends, words[inside], positions[inside] + 1)
    return list(zip(starts.tolist(), ends.tolist()))


def _before(mask: np.ndarray) -> np.ndarray:
    """Shifts a mask to the right by one: bool [N] -> bool [N]."""
    return np.concatenate([[False], mask[:-1]])
