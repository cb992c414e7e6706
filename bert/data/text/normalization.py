"""Normalizes blocks of text with array operations.

The result is the words of `tokenization.BasicTokenizer`, separated by spaces.

    "Über Straße,\\x00 東京"  ->  "uber straße ,  東  京 "

Characters are looked up in the frozen tables. Some characters depend on their
neighbours, are dropped, or expand to several. They are handled only in blocks
that have such characters.
"""

import functools
from typing import NamedTuple

import numpy as np

from bert.data.text import unicode_tables as tables

_NEWLINE, _SPACE = ord("\n"), ord(" ")


class _Tables(NamedTuple):
    """Tables of one casing, over all code points.

    targets: int32. The replacement of each character.
    special: bool. Whether a character needs more than a replacement.
    alone: bool. Whether a target is a separate word or a newline.
    ascii_targets: 256 bytes. The replacements of ASCII characters.
    ascii_dropped: bytes. The ASCII characters that are dropped.
    """

    targets: np.ndarray
    special: np.ndarray
    alone: np.ndarray
    ascii_targets: bytes
    ascii_dropped: bytes


class Normalizer:
    """Normalizes text like `tokenization.BasicTokenizer`.

    Args:
        do_lower_case: bool. Whether to lower-case the text.
        strip_accents: bool. Whether to strip accents.
    """

    def __init__(self, do_lower_case: bool, strip_accents: bool):
        self._entries = tables.entries(do_lower_case, strip_accents)
        self._tables = _tables(do_lower_case, strip_accents)
        self._expansions = _expansions(strip_accents)

    def words(self, text: str) -> list[str]:
        """Splits text into the words of the basic tokenizer.

        Args:
            text: str. Any text.

        Returns:
            list of str. Words and punctuation marks, of any length.
        """
        return self.spaced(text).split()

    def spaced(self, text: str) -> str:
        """Normalizes text, with spaces between words and around newlines.

        Args:
            text: str. Any text.

        Returns:
            str. The words of the basic tokenizer and newlines, separated by
            one or several spaces.
        """
        if text.isascii():
            targets, dropped = self._tables[-2:]
            raw = text.encode().translate(targets, dropped)
            return self._spaced(np.frombuffer(raw, np.uint8))
        return self._spaced(self._normalize(codes(text))[0])

    def spaced_with_offsets(
        self, text: str
    ) -> tuple[str, np.ndarray, np.ndarray]:
        """Normalizes text like `spaced`, with the source of each letter.

        Args:
            text: str. Any text.

        Returns:
            (str, int64 [M], int64 [M]). The result of `spaced`; for each of
            its M characters that are not spaces the character of `text` that
            it comes from, and the character after this one and its stripped
            accents. Both ascend.
        """
        characters = codes(text)
        letters, origins = self._normalize(characters)
        origins = origins[letters != _SPACE]
        limits = _limits(self._kinds(characters))
        return self._spaced(letters), origins, limits[origins]

    def _spaced(self, letters: np.ndarray) -> str:
        """Puts spaces around letters that are words: [M] -> str."""
        alone = self._tables.alone[letters]
        spaced = np.repeat(letters, 1 + 2 * alone.astype(np.int8))

        # A separate character becomes three: space, character, space.
        middles = np.flatnonzero(alone)
        middles += 2 * np.arange(len(middles)) + 1
        spaced[middles - 1] = spaced[middles + 1] = _SPACE

        raw = spaced.tobytes()
        if letters.dtype == np.uint8:
            return raw.decode("ascii")
        return raw.decode("utf-32-le", "surrogatepass")

    def _normalize(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Normalizes code points.

        Args:
            codes: int32 [N]. Code points.

        Returns:
            (int32 [M], int64 [M]). The letters, and for each the index of the
            code point that it comes from.
        """
        targets, special = self._tables[:2]
        origins = np.arange(len(codes))
        if not special[codes].any():
            return targets[codes], origins

        # The order matters: an expansion may have marks.
        kinds = self._kinds(codes)
        if (kinds == tables.SIGMA).any():
            codes = _lower_sigmas(codes, self._entries[codes])
            kinds = self._kinds(codes)
        if (kinds == tables.EXPANDS).any():
            codes, origins = self._expand(codes, kinds == tables.EXPANDS)
            kinds = self._kinds(codes)
        if (kinds == tables.MARK).any():
            codes, kept = _reorder_marks(codes, self._entries[codes])
            origins, kinds = origins[kept], self._kinds(codes)

        kept = ~_vanishing(kinds)
        return targets[codes[kept]], origins[kept]

    def _kinds(self, codes: np.ndarray) -> np.ndarray:
        return self._entries[codes] & tables.KIND

    def _expand(
        self, codes: np.ndarray, expands: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Replaces expanding characters by their parts; returns origins too."""
        parts, ends, lengths = self._expansions
        numbers = codes[expands]
        numbers = numbers + (self._entries[numbers] >> tables.DELTA_SHIFT)

        counts = np.ones(len(codes), np.int64)
        counts[expands] = lengths[numbers]
        expanded = np.repeat(codes, counts)
        inside = np.repeat(expands, counts)

        # End of each part's character in the result and in `parts`.
        here = np.repeat(np.cumsum(counts)[expands], lengths[numbers])
        there = np.repeat(ends[numbers], lengths[numbers])
        expanded[inside] = parts[there - here + np.flatnonzero(inside)]
        return expanded, np.repeat(np.arange(len(codes)), counts)


@functools.cache
def _tables(do_lower_case: bool, strip_accents: bool) -> _Tables:
    entries = tables.entries(do_lower_case, strip_accents)
    kinds = entries & tables.KIND
    targets = np.arange(tables.CODE_POINTS, dtype=np.int32)
    special = kinds > tables.SPACE

    plain = ~np.isin(kinds, (tables.CONTROL, tables.ACCENT, tables.EXPANDS))
    targets[plain] += entries[plain] >> tables.DELTA_SHIFT

    # A newline is white space, but is kept to end its line.
    targets[kinds == tables.SPACE] = _SPACE
    targets[_NEWLINE] = _NEWLINE

    alone = np.zeros(tables.CODE_POINTS, bool)
    alone[targets[kinds == tables.ALONE]] = True
    alone[_NEWLINE] = True

    return _Tables(
        targets,
        special,
        alone,
        (targets[:256] & 255).astype(np.uint8).tobytes(),
        np.flatnonzero(special[:128]).astype(np.uint8).tobytes(),
    )


@functools.cache
def _expansions(
    strip_accents: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the parts of all expansions, and their ends and lengths."""
    expansions = tables.expansions(strip_accents)
    lengths = np.array([len(parts) for parts in expansions])
    parts = np.frombuffer("".join(expansions).encode("utf-32-le"), np.int32)
    return parts, np.cumsum(lengths), lengths


def codes(text: str) -> np.ndarray:
    """Returns the code points of a text, int32 [characters]."""
    raw = text.encode("utf-32-le", "surrogatepass")
    return np.frombuffer(raw, np.int32)


def _vanishing(kinds: np.ndarray) -> np.ndarray:
    return (kinds == tables.CONTROL) | (kinds == tables.ACCENT)


def _lower_sigmas(codes: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Lower-cases capital sigmas, as in `text_ops`."""
    seen = np.flatnonzero(entries & tables.IGNORABLE == 0)
    cased = entries[seen] & tables.CASED != 0
    after_cased = np.r_[False, cased[:-1]]
    before_cased = np.r_[cased[1:], False]

    sigmas = entries & tables.KIND == tables.SIGMA
    final = seen[sigmas[seen] & after_cased & ~before_cased]
    codes = np.where(sigmas, ord("σ"), codes)
    codes[final] = ord("ς")
    return codes


def _limits(kinds: np.ndarray) -> np.ndarray:
    """Returns the end of each character with its stripped accents.

    Args:
        kinds: int32 [N]. Kinds of the characters of a text.

    Returns:
        int64 [N]. The character after each; undefined for dropped characters.
    """
    limits = np.arange(1, len(kinds) + 1)
    dropped = _vanishing(kinds)
    if not dropped.any():
        return limits

    # The accents between two letters belong to the first.
    limits[kinds == tables.CONTROL] = 0
    letters = np.flatnonzero(~dropped)
    limits[letters] = np.maximum.reduceat(limits, letters)
    return limits


def _reorder_marks(
    codes: np.ndarray, entries: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sorts marks by class, as in `text_ops`; drops some removable marks.

    Returns:
        (int32 [M], bool [N]). The code points, and which are not dropped.
    """
    classes = entries >> tables.CLASS_SHIFT & tables.CLASS
    kept = ~(_vanishing(entries & tables.KIND) & (classes > 0))
    codes, classes = codes[kept], classes[kept]
    blocks = np.cumsum(classes == 0)
    return codes[np.argsort(256 * blocks + classes, kind="stable")], kept
