"""Splitting text into words inside a graph; sliding windows of words.

    text     In "New York", he said.
    words    In | " | New | York | " | , | he | said | .

Punctuation marks at both ends of a run without white space are split off, each
as a word; those inside stay: U.S, AT&T, O'Brien. Each ideograph is a word.
Text that is already split into words is split at white space only.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert.data.text import tokenization
from bert.data.text import unicode_tables as tables

_INNER, _SPACE, _MARK, _ALONE = range(4)
_ASCII_SPACE = " \t\n\v\f\r"


class Words(NamedTuple):
    """Words of B texts, one after the other.

    codes: int32 [N] code points of all texts.
    text_splits: int64 [B + 1] boundaries of the texts in `codes`.
    starts, limits: int64 [W] start and end of each word in `codes`.
    row_splits: int64 [B + 1] boundaries of the texts among the words.
    """

    codes: tf.Tensor
    text_splits: tf.Tensor
    starts: tf.Tensor
    limits: tf.Tensor
    row_splits: tf.Tensor


class Windows(NamedTuple):
    """R sliding windows over the words of all texts, as in `tasks.ner.windows`.

    starts, limits: int64 [R] first word of each window, and the one after it.
    firsts, lasts: int64 [R] the range of words that the window labels.
    """

    starts: tf.Tensor
    limits: tf.Tensor
    firsts: tf.Tensor
    lasts: tf.Tensor


def classes_of_text() -> np.ndarray:
    """Returns the class of each code point in plain text: uint8 [0x110000]."""
    kinds = tables.entries(False, False) & tables.KIND
    classes = np.full(len(kinds), _INNER, np.uint8)
    classes[kinds == tables.SPACE] = _SPACE
    for code in np.flatnonzero(kinds == tables.ALONE).tolist():
        marks = tokenization.is_punctuation(chr(code))
        classes[code] = _MARK if marks else _ALONE
    return classes


def classes_of_words() -> np.ndarray:
    """Returns the classes for text that is already split into words."""
    classes = np.full(tables.CODE_POINTS, _INNER, np.uint8)
    classes[[ord(character) for character in _ASCII_SPACE]] = _SPACE
    return classes


class WordSplitter(tf.Module):
    """Splits texts into words.

    Args:
        classes: from `classes_of_text` or `classes_of_words`.
    """

    def __init__(self, classes: np.ndarray):
        super().__init__()
        starts, pages = tables.pages(classes.astype(np.int32))
        self._page_starts, self._pages = tf.constant(starts), tf.constant(pages)

    def split(self, strings: tf.Tensor) -> Words:
        """Splits texts.

        Args:
            strings: string [B], UTF-8; invalid bytes are dropped.

        Returns:
            the words of all texts.
        """
        text_splits, codes = tf.raw_ops.UnicodeDecode(
            input=strings, input_encoding="UTF-8", errors="ignore"
        )

        page = tf.gather(self._page_starts, tf.bitwise.right_shift(codes, 8))
        classes = tf.gather(self._pages, page + (codes & 255))
        positions = tf.range(tf.size(codes, tf.int64))

        # A run has no white space; each text and ideograph begins one.
        inside, alone = classes != _SPACE, classes == _ALONE
        borders = tf.scatter_nd(
            text_splits[:, tf.newaxis],
            tf.ones_like(text_splits),
            [tf.size(codes, tf.int64) + 1],
        )
        apart = (borders[:-1] > 0) | ~_before(inside) | alone | _before(alone)
        runs = tf.cumsum(tf.cast(inside & apart, tf.int64)) - 1

        # The core of a run: from its first to its last character that is no
        # punctuation mark. Each character outside of it is a word.
        cores = inside & (classes == _INNER)
        first = tf.math.unsorted_segment_min(
            tf.where(cores, positions, tf.int64.max), runs, tf.size(codes)
        )
        last = tf.math.unsorted_segment_max(
            tf.where(cores, positions, -1), runs, tf.size(codes)
        )
        first, last = (tf.gather(x, tf.maximum(runs, 0)) for x in (first, last))

        middle = (first < positions) & (positions <= last)
        begins = inside & ~middle
        words = tf.cumsum(tf.cast(begins, tf.int64)) - 1
        starts = tf.squeeze(tf.where(begins), 1)

        limits = tf.math.unsorted_segment_max(
            tf.where(inside, positions + 1, -1), words, tf.size(starts)
        )

        return Words(
            codes,
            text_splits,
            starts,
            limits,
            tf.searchsorted(starts, text_splits, out_type=tf.int64),
        )


def strings_of(
    codes: tf.Tensor, starts: tf.Tensor, limits: tf.Tensor
) -> tf.Tensor:
    """Encodes parts of texts as strings.

    Args:
        codes: int32 [N] code points.
        starts, limits: int64 [W] start and end of each part.

    Returns:
        string [W].
    """
    positions = tf.ragged.range(starts, limits)
    return tf.raw_ops.UnicodeEncode(
        input_values=tf.gather(codes, positions.values),
        input_splits=positions.row_splits,
        output_encoding="UTF-8",
        errors="strict",
    )


def windows(
    lengths: tf.Tensor, row_splits: tf.Tensor, size: int, stride: int
) -> Windows:
    """Divides texts into sliding windows, as `tasks.ner.windows` does.

    Args:
        lengths: int64 [W] number of tokens of each word.
        row_splits: int64 [B + 1] boundaries of the texts among the words.
        size: maximum number of tokens in a window.
        stride: tokens between the starts of two windows.

    Returns:
        the windows of all texts.
    """
    before = tf.concat([[0], tf.cumsum(lengths)], 0)  # tokens before words
    begins = tf.gather(before, row_splits)

    # A text of at most `size` tokens is one window.
    rest = tf.maximum(begins[1:] - begins[:-1] - size, 0)
    numbers = tf.ragged.range(1 - (-rest // stride))
    text = numbers.value_rowids()
    wanted = tf.minimum(numbers.values * stride, tf.gather(rest, text))

    # A window begins and ends between two words.
    starts = tf.searchsorted(
        before, tf.gather(begins, text) + wanted, out_type=tf.int64
    )
    ends = tf.gather(before, starts) + size
    limits = tf.searchsorted(before, ends, "right", tf.int64) - 1
    limits = tf.minimum(limits, tf.gather(row_splits, text + 1))

    # Two windows of a text divide the words that they share in the middle.
    middles = tf.gather(before, starts[1:]) + tf.gather(before, limits[:-1])
    centers = before[:-1] + before[1:]
    borders = tf.searchsorted(centers, middles, out_type=tf.int64)
    borders = tf.where(
        text[1:] == text[:-1], borders, tf.gather(row_splits, text[1:])
    )

    return Windows(
        starts,
        limits,
        tf.concat([row_splits[:1], borders], 0),
        tf.concat([borders, row_splits[-1:]], 0),
    )


def _before(mask: tf.Tensor) -> tf.Tensor:
    """Shifts a mask to the right by one: bool [N] -> bool [N]."""
    return tf.concat([tf.zeros_like(mask[:1]), mask[:-1]], 0)
