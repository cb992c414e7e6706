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
    kernel_targets: the same for the kernel, without reserved characters.
    special: bool, whether more has to be done than replacing it.
    alone: bool, whether a target is a word by itself.
    ascii_targets: 256 bytes, the replacement of ASCII characters.
    ascii_dropped: ASCII characters that are dropped.
    """

    targets: np.ndarray
    kernel_targets: np.ndarray
    special: np.ndarray
    alone: np.ndarray
    ascii_targets: bytes
    ascii_dropped: bytes


class Normalizer:
    """Normalizes text as `tokenization.BasicTokenizer` does.

    Args:
        do_lower_case: lower-case the text.
        strip_accents: strip accents; None: as `do_lower_case`.
    """

    def __init__(self, do_lower_case: bool, strip_accents: bool | None = None):
        strip_accents = tokenization.strips_accents(
            do_lower_case, strip_accents
        )
        self._entries = tables.entries(do_lower_case, strip_accents)
        self._tables = _tables(do_lower_case, strip_accents)
        self._expansions = _expansions(strip_accents)

    def lines(self, lines: list[str]) -> bytes:
        """Normalizes lines for the kernel.

        Args:
            lines: strings of any characters, newlines included.

        Returns:
            the normalized lines in UTF-8, with a newline after each. The
            kernel splits them into the words of the basic tokenizer; a word of
            more than 200 characters is replaced by an unknown one.
        """
        text = "\n".join(lines)
        if text.count("\n") >= len(lines):
            lines = [line.replace("\n", " ") for line in lines]
            text = "\n".join(lines)
        if text.isascii():
            return self._ascii_lines(text) + b"\n"
        plain = [line for line in lines if line.isascii()]
        if not plain:
            return self._any_lines(text) + b"\n"
        other = [line for line in lines if not line.isascii()]
        plain = iter(self._ascii_lines("\n".join(plain)).split(b"\n"))
        other = iter(self._any_lines("\n".join(other)).split(b"\n"))
        merged = [next(plain if x.isascii() else other) for x in lines]
        return b"\n".join(merged) + b"\n"

    def words(self, text: str) -> list[str]:
        """Splits text into the words of the basic tokenizer.

        Args:
            text: any text.

        Returns:
            words and punctuation marks, of any length.
        """
        if text.isascii():
            letters = np.frombuffer(self._ascii(text), np.uint8)
        else:
            letters = self._normalize(_codes(text), self._tables.targets)
        alone = self._tables.alone[letters]
        spaced = np.repeat(letters, 1 + 2 * alone.astype(np.int8))
        middles = np.flatnonzero(alone)
        middles += 2 * np.arange(len(middles)) + 1
        spaced[middles - 1] = spaced[middles + 1] = _SPACE
        raw = spaced.tobytes()
        if letters.dtype == np.uint8:
            return raw.decode("ascii").split()
        return raw.decode("utf-32-le", "surrogatepass").split()

    def _ascii(self, text: str) -> bytes:
        targets, dropped = self._tables[-2:]
        return text.encode().translate(targets, dropped)

    def _ascii_lines(self, text: str) -> bytes:
        found = self._ascii(text)
        if _may_be_long(self._ends_word(np.frombuffer(found, np.uint8))):
            return self._any_lines(text)
        return found

    def _any_lines(self, text: str) -> bytes:
        letters = self._normalize(_codes(text), self._tables.kernel_targets)
        ends = self._ends_word(letters)
        if _may_be_long(ends):
            letters = _replace_long(letters, ends)
        return letters.tobytes().decode("utf-32-le").encode()

    def _ends_word(self, letters: np.ndarray) -> np.ndarray:
        """Returns whether words end at normalized characters: bool [N]."""
        alone = self._tables.alone[letters]
        return alone | (letters == _SPACE) | (letters == _NEWLINE)

    def _normalize(self, codes: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Normalizes code points: int32 [N] -> int32 [M]."""
        special = self._tables.special
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
    kernel_targets = targets.copy()
    kernel_targets[_SURROGATES] = ord(UNKNOWN)
    reserved = np.isin(targets, [ord(x) for x in RESERVED])
    kernel_targets[reserved] = ord(UNKNOWN)
    alone = np.zeros(tables.CODE_POINTS, bool)
    alone[targets[kinds == tables.ALONE]] = True
    return _Tables(
        targets,
        kernel_targets,
        special,
        alone,
        (targets[:256] & 255).astype(np.uint8).tobytes(),
        np.flatnonzero(special[:128]).astype(np.uint8).tobytes(),
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


def _codes(text: str) -> np.ndarray:
    raw = text.encode("utf-32-le", "surrogatepass")
    return np.frombuffer(raw, np.int32)


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


def _may_be_long(ends: np.ndarray) -> bool:
    """Returns whether a word may have more than 200 characters.

    Such a word covers one of the blocks of 100 characters.
    """
    whole = len(ends) // _BLOCK * _BLOCK
    return not ends[:whole].reshape(-1, _BLOCK).any(1).all()


def _replace_long(letters: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Replaces each word of more than 200 characters by an unknown one."""
    limits = np.r_[-1, np.flatnonzero(ends), len(letters)]
    long = np.flatnonzero(np.diff(limits) > LONGEST_WORD + 1)
    kept, letters = np.ones(len(letters), bool), letters.copy()
    for start, end in zip(limits[long] + 1, limits[long + 1]):
        letters[start] = ord(UNKNOWN)
        kept[start + 1 : end] = False
    return letters[kept]
