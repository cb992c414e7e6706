"""WordPiece tokenizer inside a graph, with the same ids as `tokenization.py`.

    strings -> characters -> words -> wordpieces

A string is decoded to code points. A frozen table has the replacement of each
code point and its kind: part of a word, separate word, or space. Characters
that depend on their neighbours (control characters, accents, Hangul, the final
sigma) are handled only in batches with such characters. The words are encoded
again and split by TensorFlow Text.

TensorFlow Text is imported on first use, as training does not need it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert.data.text import casing, vocabulary
from bert.data.text import unicode_tables as tables

MAX_CHARACTERS = 200  # per word; longer words are [UNK]
_MAX_BYTES = 4 * MAX_CHARACTERS
_STRINGS = [tf.TensorSpec([None], tf.string)]


class _Characters(NamedTuple):
    """Characters of all strings, concatenated; each string ends in a space.

    codes: int32 [N]. Code points.
    entries: int32 [N]. Entries of the code points in `unicode_tables`.
    origins: int64 [N]. Index of the decoded character of each; ascending.
    """

    codes: tf.Tensor
    entries: tf.Tensor
    origins: tf.Tensor


class _Words(NamedTuple):
    """Words of all strings, concatenated.

    letters: int32 [M]. Code points of all words.
    splits: int64 [W + 1]. Boundaries of the words in `letters`.
    origins: int64 [M]. Index of the decoded character of each letter.
    row_splits: int64 [B + 1]. Boundaries of the strings among the words.
    """

    letters: tf.Tensor
    splits: tf.Tensor
    origins: tf.Tensor
    row_splits: tf.Tensor


class GraphTokenizer(tf.Module):
    """Tokenizes strings in a graph; can be saved in a SavedModel.

    Returns the same ids as `tokenization.FullTokenizer` for every string.
    Invalid UTF-8 is dropped as in `tokenization.convert_to_unicode`: the bytes
    of a broken sequence before the first byte that cannot continue it. The
    vocabulary is a constant of the graph.

    Args:
        tokens: list of str. Tokens of the vocabulary in the order of their
            ids, including the five special tokens.
        do_lower_case: bool. Whether to lower-case the text. Default: True.
        strip_accents: bool or None. Whether to strip accents. Default: as
            `do_lower_case`.

    Attributes:
        do_lower_case, strip_accents: bool. The normalization.
        vocab_size: int. Number of tokens in the vocabulary.
        pad_id, unk_id, cls_id, sep_id, mask_id: int. Ids of the special
            tokens.
    """

    def __init__(
        self,
        tokens: list[str],
        do_lower_case: bool = True,
        strip_accents: bool | None = None,
    ):
        super().__init__()
        import tensorflow_text

        self.do_lower_case = do_lower_case
        self.strip_accents = casing.strips(do_lower_case, strip_accents)
        self.vocab_size = len(tokens)
        ids = [tokens.index(token) for token in vocabulary.SPECIAL_TOKENS]
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = ids
        with tf.device("/CPU:0"):
            self._wordpiece = tensorflow_text.FastWordpieceTokenizer(
                tokens,
                max_bytes_per_word=_MAX_BYTES,
                token_out_type=tf.int32,
                unknown_token=vocabulary.UNK,
                no_pretokenization=True,
            )
            self._cleaner = _Cleaner(do_lower_case, self.strip_accents)

    @tf.function(input_signature=_STRINGS, autograph=False)
    def tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """Splits strings into words and words into wordpieces.

        Args:
            strings: string [B]. Texts in UTF-8.

        Returns:
            tf.RaggedTensor, int32 [B, (words), (tokens)]. Token ids.
        """
        with tf.device("/CPU:0"):
            row_splits, codes = tf.raw_ops.UnicodeDecode(
                input=_end_in_space(strings),
                input_encoding="UTF-8",
                errors="ignore",
            )
            words = self._cleaner.words(codes, row_splits)
            ids = self._wordpiece.tokenize(_encode(words))
            return _group_words(ids, words.row_splits)

    @tf.function(input_signature=_STRINGS, autograph=False)
    def tokenize_with_offsets(
        self, strings: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Splits strings; also returns the byte offsets of each token.

        `strings[b][start:limit]` are the characters of the token, including
        stripped accents and dropped characters between them. A character that
        expands to several belongs to each token with one of its parts. The
        offsets of `[UNK]` are the whole word.

        Args:
            strings: string [B]. Texts in UTF-8.

        Returns:
            (ids, starts, limits). Ids are int32 [B, (words), (tokens)]. Starts
            and limits are int64 of the same shape: the first byte of each
            token and the byte after its last. Both ascend within a string.
        """
        with tf.device("/CPU:0"):
            row_splits, codes, offsets = tf.raw_ops.UnicodeDecodeWithOffsets(
                input=_end_in_space(strings),
                input_encoding="UTF-8",
                errors="ignore",
            )
            words = self._cleaner.words(codes, row_splits)

            ids, starts, limits = self._wordpiece.tokenize_with_offsets(
                _encode(words)
            )

            # Map bytes of words to characters, then to bytes of the strings.
            first, last = _spans(words, starts, limits)
            starts = tf.gather(offsets, tf.gather(words.origins, first))
            limits = tf.gather(
                self._cleaner.limits(codes, offsets),
                tf.gather(words.origins, last),
            )

            return (
                _group_words(ids, words.row_splits),
                _group_words(ids.with_values(starts), words.row_splits),
                _group_words(ids.with_values(limits), words.row_splits),
            )


class _Cleaner(tf.Module):
    """Cleans, normalizes and splits text with the frozen tables.

    Args:
        do_lower_case: bool. Whether to lower-case the text.
        strip_accents: bool. Whether to strip accents.
    """

    def __init__(self, do_lower_case: bool, strip_accents: bool):
        super().__init__()
        entries = tables.entries(do_lower_case, strip_accents)
        page_starts, pages = tables.pages(entries)
        self._page_starts = tf.constant(page_starts)
        self._pages = tf.constant(pages)
        expansions = tables.expansions(strip_accents)
        lengths = [len(parts) for parts in expansions]
        parts = np.frombuffer("".join(expansions).encode("utf-32-le"), "<i4")
        self._parts = tf.constant(parts, tf.int32)
        self._parts_entries = self._entries(self._parts)
        self._parts_ends = tf.constant(np.cumsum(lengths), tf.int64)
        self._parts_lengths = tf.constant(lengths, tf.int64)

    def words(self, codes: tf.Tensor, row_splits: tf.Tensor) -> _Words:
        """Cleans, normalizes and splits strings.

        Args:
            codes: int32 [N]. Code points; each string ends in a space.
            row_splits: int64 [B + 1]. Boundaries of the strings.

        Returns:
            _Words. The words, without empty words.
        """
        entries = self._entries(codes)
        characters = _if_any(
            _kinds(entries) > tables.SPACE,
            self._normalize,
            _Characters(codes, entries, tf.range(tf.size(codes, tf.int64))),
        )
        return _split(characters, row_splits)

    def limits(self, codes: tf.Tensor, offsets: tf.Tensor) -> tf.Tensor:
        """Computes the ends of characters, including their stripped accents.

        Args:
            codes: int32 [N]. Code points.
            offsets: int64 [N]. First byte of each code point.

        Returns:
            int64 [N]. The byte after each code point; undefined for dropped
            characters.
        """
        kinds = _kinds(self._entries(codes))
        carrier = tf.cumsum(tf.cast(~_vanishing(kinds), tf.int64))
        limits = offsets + _utf8_lengths(codes)
        limits *= tf.cast(kinds != tables.CONTROL, tf.int64)
        return tf.gather(tf.math.segment_max(limits, carrier), carrier)

    def _entries(self, codes: tf.Tensor) -> tf.Tensor:
        """Looks up the entries of code points: int32 [N] -> int32 [N]."""
        page_starts = tf.gather(
            self._page_starts, tf.bitwise.right_shift(codes, 8)
        )
        return tf.gather(self._pages, page_starts + (codes & 255))

    def _normalize(self, characters: _Characters) -> _Characters:
        """Normalizes characters that depend on their neighbours."""
        characters = _if_any(
            _kinds(characters.entries) == tables.SIGMA,
            _mark_final_sigmas,
            characters,
        )
        characters = _if_any(
            _kinds(characters.entries) == tables.EXPANDS,
            self._expand,
            characters,
        )
        characters = _if_any(
            _kinds(characters.entries) == tables.MARK,
            _reorder_marks,
            characters,
        )
        vanishing = _vanishing(_kinds(characters.entries))
        return _gather(characters, _indices(~vanishing))

    def _expand(self, characters: _Characters) -> _Characters:
        """Replaces expanding characters by their parts."""
        codes, entries, origins = characters
        expanding = _indices(_kinds(entries) == tables.EXPANDS)
        numbers = tf.gather(codes + _deltas(entries), expanding)

        # The parts of all characters are appended to the text. Each
        # character selects a range: itself or its parts.
        size = tf.size(codes, tf.int64)
        ends = size + tf.gather(self._parts_ends, numbers)
        begins = ends - tf.gather(self._parts_lengths, numbers)
        where, itself = expanding[:, tf.newaxis], tf.range(size)
        splits, sources = tf.raw_ops.RaggedRange(
            starts=tf.tensor_scatter_nd_update(itself, where, begins),
            limits=tf.tensor_scatter_nd_update(itself + 1, where, ends),
            deltas=tf.constant(1, tf.int64),
        )
        parts = _indices(sources >= size)
        parents = tf.searchsorted(splits, parts, "right", tf.int64) - 1

        return _Characters(
            tf.gather(tf.concat([codes, self._parts], 0), sources),
            tf.gather(tf.concat([entries, self._parts_entries], 0), sources),
            tf.gather(
                origins,
                tf.tensor_scatter_nd_update(
                    sources, parts[:, tf.newaxis], parents
                ),
            ),
        )


def _end_in_space(strings: tf.Tensor) -> tf.Tensor:
    """Appends a space, so that a string does not affect the next one."""
    return tf.strings.join([strings, " "])


def _kinds(entries: tf.Tensor) -> tf.Tensor:
    return entries & tables.KIND


def _classes(entries: tf.Tensor) -> tf.Tensor:
    shifted = tf.bitwise.right_shift(entries, tables.CLASS_SHIFT)
    return shifted & tables.CLASS


def _deltas(entries: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.right_shift(entries, tables.DELTA_SHIFT)


def _vanishing(kinds: tf.Tensor) -> tf.Tensor:
    return (kinds == tables.CONTROL) | (kinds == tables.ACCENT)


def _indices(mask: tf.Tensor) -> tf.Tensor:
    """Returns the indices where a mask is true: bool [N] -> int64 [...]."""
    return tf.squeeze(tf.where(mask), 1)


def _gather(characters: _Characters, indices: tf.Tensor) -> _Characters:
    return _Characters(*(tf.gather(field, indices) for field in characters))


def _if_any(mask: tf.Tensor, function: Callable, value):
    """Returns `function(value)` if any of `mask` is true, else `value`."""
    return tf.cond(tf.reduce_any(mask), lambda: function(value), lambda: value)


def _utf8_lengths(codes: tf.Tensor) -> tf.Tensor:
    """Returns the UTF-8 length of each code point: int32 [N] -> int64 [N]."""
    longer = [tf.cast(codes >= c, tf.int64) for c in (0x80, 0x800, 0x10000)]
    return 1 + tf.add_n(longer)


def _mark_final_sigmas(characters: _Characters) -> _Characters:
    """Lower-cases capital sigmas at the ends of words to the final sigma.

    As in `str.lower`, a sigma is final if a cased letter is before it but not
    after it. Ignorable characters are skipped.
    """
    codes, entries, origins = characters
    seen = _indices(entries & tables.IGNORABLE == 0)
    cased = tf.gather(entries & tables.CASED != 0, seen)
    after_cased = tf.concat([[False], cased[:-1]], 0)
    before_cased = tf.concat([cased[1:], [False]], 0)
    sigma = tf.gather(_kinds(entries) == tables.SIGMA, seen)
    final = tf.boolean_mask(seen, sigma & after_cased & ~before_cased)
    # The final sigma is the code point before the normal small sigma.
    one_less = tf.fill(tf.shape(final), -1 << tables.DELTA_SHIFT)
    entries = tf.tensor_scatter_nd_add(entries, final[:, tf.newaxis], one_less)
    return _Characters(codes, entries, origins)


def _reorder_marks(characters: _Characters) -> _Characters:
    """Sorts marks by class between characters of class 0.

    See the Unicode standard, 3.11. Each string ends in a space, so marks do
    not move to another string. The origins remain ascending.
    """
    classes = _classes(characters.entries)
    passable = _vanishing(_kinds(characters.entries)) & (classes > 0)
    characters = _gather(characters, _indices(~passable))
    classes = tf.cast(_classes(characters.entries), tf.int64)
    blocks = tf.cumsum(tf.cast(classes == 0, tf.int64))
    order = tf.argsort(256 * blocks + classes, stable=True)
    return _gather(characters, order)._replace(origins=characters.origins)


def _split(characters: _Characters, row_splits: tf.Tensor) -> _Words:
    """Splits at spaces and around punctuation marks and ideographs.

    Args:
        characters: _Characters. Without characters that expand or are
            dropped.
        row_splits: int64 [B + 1]. Boundaries of the strings among the decoded
            characters.

    Returns:
        _Words. The words.
    """
    codes, entries, origins = characters
    kinds = _kinds(entries)
    inside = kinds != tables.SPACE
    borders = ~inside | (kinds == tables.ALONE)
    borders = tf.concat([[True], borders, [True]], 0)
    first = _indices(inside & (borders[:-2] | borders[1:-1]))
    last = _indices(inside & (borders[2:] | borders[1:-1]))
    lengths = last - first + 1
    letters = _indices(inside)
    return _Words(
        letters=tf.gather(codes + _deltas(entries), letters),
        splits=tf.concat([[0], tf.cumsum(lengths)], 0),
        origins=tf.gather(origins, letters),
        row_splits=tf.searchsorted(
            tf.gather(origins, first), row_splits, out_type=tf.int64
        ),
    )


def _encode(words: _Words) -> tf.Tensor:
    """Encodes words, string [W]; pads too long words to make them [UNK]."""
    strings = tf.raw_ops.UnicodeEncode(
        input_values=words.letters,
        input_splits=words.splits,
        output_encoding="UTF-8",
        errors="strict",
    )
    too_long = words.splits[1:] - words.splits[:-1] > MAX_CHARACTERS
    return _if_any(
        too_long,
        lambda strings: tf.strings.join(
            [strings, tf.where(too_long, " " * (_MAX_BYTES + 1), "")]
        ),
        strings,
    )


def _spans(
    words: _Words, starts: tf.RaggedTensor, limits: tf.RaggedTensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the letters of tokens.

    Args:
        words: _Words. W words of M letters.
        starts: int32 [W, (tokens)]. First byte of each token in its word.
        limits: int32 [W, (tokens)]. The byte after the last byte.

    Returns:
        (int64 [tokens], int64 [tokens]). Indices of the first and the last
        letter of each token among all letters.
    """
    ends = tf.cumsum(_utf8_lengths(words.letters))
    bytes_before = tf.concat([[0], ends], 0)  # int64 [M + 1]
    word_starts = tf.gather(bytes_before, words.splits)

    of_word = starts.value_rowids()
    base = tf.gather(word_starts, of_word)
    first = base + tf.cast(starts.values, tf.int64)
    after = base + tf.cast(limits.values, tf.int64)
    # Words that are too long were padded.
    after = tf.minimum(after, tf.gather(word_starts, of_word + 1))

    return (
        tf.searchsorted(bytes_before, first, out_type=tf.int64),
        tf.searchsorted(ends, after, out_type=tf.int64),
    )


def _group_words(
    values: tf.RaggedTensor, row_splits: tf.Tensor
) -> tf.RaggedTensor:
    """Groups words by string: [W, (tokens)] -> [B, (words), (tokens)]."""
    return tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)
