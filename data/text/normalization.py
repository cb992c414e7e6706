"""Normalization of whole blocks of text with arrays.

The result is what the kernel of TensorFlow Text needs to find the words of
`tokenization.BasicTokenizer`: it splits at spaces, around punctuation and
around ideographs by itself, but neither cleans nor normalizes as the original
does.

    "Über Straße,\\x00 東京"  ->  "uber straße, 東京"

Characters are looked up in the frozen tables. Those whose result depends on
their neighbours, or that become none or several, are handled only in blocks
that have any.
"""

import functools
from typing import NamedTuple

import numpy as np

from data.text import tokenization
from data.text import unicode_tables as tables

# Noncharacters: no vocabulary and no text needs them.
UNKNOWN = "\uffff"  # in no token, so a word with it is [UNK]
LINE_END = "\ufffe"
LONGEST_WORD = 200  # characters; longer words are [UNK]

# Punctuation of Unicode 15 and 16: part of a word for the original, under
# `unicode_tables.UNICODE_VERSION`, but split off by the kernel.
KERNEL_SPLITS = (
    *(0x1B4E, 0x1B4F, 0x1B7F, 0x10D6E, 0x113D4, 0x113D5, 0x113D7, 0x113D8),
    *range(0x11B00, 0x11B0A),
    *(0x11BE1, *range(0x11F43, 0x11F50), 0x16D6D, 0x16D6E, 0x16D6F, 0x1E5FF),
)
RESERVED = frozenset(UNKNOWN + LINE_END + "".join(map(chr, KERNEL_SPLITS)))

_NEWLINE, _SPACE = ord("\n"), ord(" ")
_SURROGATES = slice(0xD800, 0xE000)
_BLOCK = LONGEST_WORD // 2


class _Tables(NamedTuple):
    """Tables of one casing, over all code points.

    targets: int32, the character that replaces a character.
    special: bool, whether more has to be done than replacing it.
    borders: bool, whether a word ends before and after a target.
    ascii_targets: 256 bytes, the replacement of ASCII characters.
    ascii_dropped: ASCII characters that are dropped.
    ascii_borders: 256 bytes, 1 where a word ends before and after a target.
    """

    targets: np.ndarray
    special: np.ndarray
    borders: np.ndarray
    ascii_targets: bytes
    ascii_dropped: bytes
    ascii_borders: bytes


class Normalizer:
    """Normalizes lines.

    Args:
        do_lower_case: lower-case the text.
        strip_accents: strip accents; None: as `do_lower_case`.
    """

    def __init__(self, do_lower_case: bool, strip_accents: bool | None = None):
        strips = tokenization.strips_accents(do_lower_case, strip_accents)
        self._entries = tables.entries(do_lower_case, strips)
        self._tables = _tables(do_lower_case, strips)
        self._expansions = _expansions(strips)

    def lines(self, lines: list[str]) -> bytes:
        """Normalizes lines.

        Args:
            lines: strings of any characters, newlines included.

        Returns:
            the normalized lines in UTF-8, with a newline after each. Splitting
            them at spaces and around punctuation and ideographs gives the
            words of `tokenization.BasicTokenizer`; a word of more than 200
            characters is replaced by an unknown one.
        """
        text = "\n".join(lines)
        if text.count("\n") >= len(lines):
            lines = [line.replace("\n", " ") for line in lines]
            text = "\n".join(lines)
        if text.isascii():
            return self._ascii(text) + b"\n"
        plain = [line for line in lines if line.isascii()]
        if not plain:
            return self._any(text) + b"\n"
        other = [line for line in lines if not line.isascii()]
        plain = iter(self._ascii("\n".join(plain)).split(b"\n"))
        other = iter(self._any("\n".join(other)).split(b"\n"))
        merged = [next(plain if x.isascii() else other) for x in lines]
        return b"\n".join(merged) + b"\n"

    def _ascii(self, text: str) -> bytes:
        known = self._tables
        found = text.encode().translate(
            known.ascii_targets, known.ascii_dropped
        )
        borders = found.translate(known.ascii_borders)
        if _may_be_long(np.frombuffer(borders, bool)):
            return self._any(text)
        return found

    def _any(self, text: str) -> bytes:
        raw = text.encode("utf-32-le", "surrogatepass")
        letters = self._normalize(np.frombuffer(raw, np.int32))
        borders = self._tables.borders[letters]
        if _may_be_long(borders):
            letters = _replace_long(letters, borders)
        return letters.tobytes().decode("utf-32-le").encode()

    def _normalize(self, codes: np.ndarray) -> np.ndarray:
        """Normalizes code points: int32 [N] -> int32 [M]."""
        targets, special = self._tables.targets, self._tables.special
        if not special[codes].any():
            return targets[codes]
        kinds = self._kinds(codes)
        if (kinds == tables.SIGMA).any():
            codes = _lower_sigmas(codes, self._entries[codes])
            kinds = self._kinds(codes)
        if (kinds == tables.EXPANDS).any():
            codes = self._expand(codes, kinds == tables.EXPANDS)
            kinds = self._kinds(codes)
        if (kinds == tables.MARK).any():
            codes = _reorder_marks(codes, self._entries[codes])
            kinds = self._kinds(codes)
        return targets[codes[~_vanishing(kinds)]]

    def _kinds(self, codes: np.ndarray) -> np.ndarray:
        return self._entries[codes] & tables.KIND

    def _expand(self, codes: np.ndarray, expands: np.ndarray) -> np.ndarray:
        """Replaces characters that expand by their parts."""
        parts, ends, lengths = self._expansions
        numbers = codes[expands]
        numbers = numbers + (self._entries[numbers] >> tables.DELTA_SHIFT)
        counts = np.ones(len(codes), np.int64)
        counts[expands] = lengths[numbers]
        expanded = np.repeat(codes, counts)
        inside = np.repeat(expands, counts)
        # Of each part: the end of its character here and in `parts`.
        here = np.repeat(np.cumsum(counts)[expands], lengths[numbers])
        there = np.repeat(ends[numbers], lengths[numbers])
        expanded[inside] = parts[there - here + np.flatnonzero(inside)]
        return expanded


@functools.cache
def _tables(do_lower_case: bool, strip_accents: bool) -> _Tables:
    entries = tables.entries(do_lower_case, strip_accents)
    kinds = entries & tables.KIND
    targets = np.arange(tables.CODE_POINTS, dtype=np.int32)
    special = kinds > tables.SPACE
    plain = ~np.isin(kinds, (tables.CONTROL, tables.ACCENT, tables.EXPANDS))
    targets[plain] += entries[plain] >> tables.DELTA_SHIFT
    targets[kinds == tables.SPACE] = _SPACE
    targets[_NEWLINE] = _NEWLINE
    unknown = np.isin(targets, [ord(x) for x in RESERVED])
    unknown[_SURROGATES] = True
    targets[unknown] = ord(UNKNOWN)
    borders = np.zeros(tables.CODE_POINTS, bool)
    borders[targets[kinds == tables.ALONE]] = True
    borders[[_SPACE, _NEWLINE]] = True
    dropped = np.flatnonzero(special[:128])
    return _Tables(
        targets,
        special,
        borders,
        np.where(targets[:256] < 256, targets[:256], 0).astype("u1").tobytes(),
        dropped.astype("u1").tobytes(),
        borders[:256].astype("u1").tobytes(),
    )


@functools.cache
def _expansions(
    strip_accents: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns all parts of expansions, and the end and length of each."""
    expansions = tables.expansions(strip_accents)
    lengths = np.array([len(parts) for parts in expansions])
    parts = np.frombuffer("".join(expansions).encode("utf-32-le"), np.int32)
    return parts, np.cumsum(lengths), lengths


def _vanishing(kinds: np.ndarray) -> np.ndarray:
    return (kinds == tables.CONTROL) | (kinds == tables.ACCENT)


def _lower_sigmas(codes: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Lower-cases capital sigmas, as `text_ops` does."""
    seen = np.flatnonzero(entries & tables.IGNORABLE == 0)
    cased = entries[seen] & tables.CASED != 0
    after_cased = np.r_[False, cased[:-1]]
    before_cased = np.r_[cased[1:], False]
    sigmas = entries & tables.KIND == tables.SIGMA
    final = seen[sigmas[seen] & after_cased & ~before_cased]
    codes = np.where(sigmas, ord("σ"), codes)
    codes[final] = ord("ς")
    return codes


def _reorder_marks(codes: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Sorts marks by class, as `text_ops` does; drops some that vanish."""
    classes = entries >> tables.CLASS_SHIFT & tables.CLASS
    kept = ~(_vanishing(entries & tables.KIND) & (classes > 0))
    codes, classes = codes[kept], classes[kept]
    blocks = np.cumsum(classes == 0)
    return codes[np.argsort(256 * blocks + classes, kind="stable")]


def _may_be_long(borders: np.ndarray) -> bool:
    """Returns whether a word may have more than 200 characters.

    Such a word covers one of the blocks of 100 characters.
    """
    whole = len(borders) // _BLOCK * _BLOCK
    return not borders[:whole].reshape(-1, _BLOCK).any(1).all()


def _replace_long(letters: np.ndarray, borders: np.ndarray) -> np.ndarray:
    """Replaces each word of more than 200 characters by an unknown one."""
    ends = np.r_[-1, np.flatnonzero(borders), len(letters)]
    long = np.flatnonzero(np.diff(ends) > LONGEST_WORD + 1)
    kept, letters = np.ones(len(letters), bool), letters.copy()
    for start, end in zip(ends[long] + 1, ends[long + 1]):
        letters[start] = ord(UNKNOWN)
        kept[start + 1 : end] = False
    return letters[kept]
