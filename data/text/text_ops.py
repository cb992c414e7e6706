"""Text to WordPiece ids inside a graph: the ids of `data/text/tokenization.py`.

    strings -> characters -> words -> pieces

A string is decoded to code points, each of which is looked up in a frozen
table: what takes its place, and whether it belongs to a word, is one, or
ends one. What takes a look at the neighbours too (control characters,
accents, Hangul, the final sigma) happens only in batches that have any.
The words are encoded again and split by TensorFlow Text.

TensorFlow Text is imported late: nothing on the path of training needs it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from data import features
from data.text import tokenization, vocabulary
from data.text import unicode_tables as tables

MAX_CHARACTERS = 200  # of a word; a longer one is [UNK]
_MAX_BYTES = 4 * MAX_CHARACTERS
_STRINGS = [tf.TensorSpec([None], tf.string)]


class _Characters(NamedTuple):
    """Characters of all rows, one after the other; each row ends in a space.

    codes: int32 [N] code points.
    entries: int32 [N] theirs in `unicode_tables`.
    origins: int64 [N] from which of the decoded characters; ascending.
    """

    codes: tf.Tensor
    entries: tf.Tensor
    origins: tf.Tensor


class _Words(NamedTuple):
    """Words of all rows, one after the other.

    letters: int32 [M] code points of all words.
    splits: int64 [W + 1] where the words begin and end in `letters`.
    origins: int64 [M] from which of the decoded characters.
    row_splits: int64 [B + 1] where the rows begin and end among the words.
    """

    letters: tf.Tensor
    splits: tf.Tensor
    origins: tf.Tensor
    row_splits: tf.Tensor


class GraphTokenizer(tf.Module):
    """Splits strings into pieces in a graph; can be saved in a SavedModel.

    The ids are those of `tokenization.FullTokenizer` on every string. Bytes
    that are no UTF-8 are left out, as `tokenization.convert_to_unicode`
    does: of a broken sequence, the bytes up to the first that cannot belong
    to it. The vocabulary becomes a constant of the graph.

    Args:
        vocabulary_or_path: path of the vocabulary file, or its tokens in the
            order of their ids, the five special tokens among them.
        do_lower_case: lower-case the text.
        strip_accents: strip accents; None: as `do_lower_case`.

    Attributes:
        do_lower_case, strip_accents: its casing.
        vocab_size: tokens in the vocabulary.
        pad_id, unk_id, cls_id, sep_id, mask_id: ids of the special tokens.

    Raises:
        UserError: the file is no vocabulary.
    """

    def __init__(
        self,
        vocabulary_or_path: str | list[str],
        do_lower_case: bool = True,
        strip_accents: bool | None = None,
    ):
        super().__init__()
        import tensorflow_text

        strips = tokenization.strips_accents(do_lower_case, strip_accents)
        self.do_lower_case, self.strip_accents = do_lower_case, strips
        tokens = vocabulary_or_path
        if isinstance(tokens, str):
            tokens = list(vocabulary.read_vocabulary(tokens))
        self.vocab_size = len(tokens)
        (
            self.pad_id,
            self.unk_id,
            self.cls_id,
            self.sep_id,
            self.mask_id,
        ) = map(tokens.index, vocabulary.SPECIAL_TOKENS)
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
        """Splits strings into words and words into pieces.

        Args:
            strings: string [B], UTF-8.

        Returns:
            int32 [B, (words), (pieces)] ids.
        """
        with tf.device("/CPU:0"):
            row_splits, codes = tf.raw_ops.UnicodeDecode(
                input=_end_in_space(strings),
                input_encoding="UTF-8",
                errors="ignore",
            )
            words = self._cleaner.words(codes, row_splits)
            pieces = self._wordpiece.tokenize(_encode(words))
            return _rows(pieces, words.row_splits)

    @tf.function(input_signature=_STRINGS, autograph=False)
    def tokenize_with_offsets(
        self, strings: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Splits strings, and tells where in them each piece comes from.

        `strings[b][start:limit]` runs from the first to the last character
        that the piece was made of, with the accents that were stripped from
        the last; dropped characters between them are inside. A character
        that became several belongs to each piece that has one of them; the
        piece `[UNK]` is the whole word.

        Args:
            strings: string [B], UTF-8.

        Returns:
            ids, int32 [B, (words), (pieces)]; the first byte of each piece
            and the first behind it, both int64 of the same shape. In a row
            both never descend.
        """
        with tf.device("/CPU:0"):
            row_splits, codes, places = tf.raw_ops.UnicodeDecodeWithOffsets(
                input=_end_in_space(strings),
                input_encoding="UTF-8",
                errors="ignore",
            )
            words = self._cleaner.words(codes, row_splits)
            ids, starts, limits = self._wordpiece.tokenize_with_offsets(
                _encode(words)
            )
            first, last = _spans(words, starts, limits)
            starts = tf.gather(places, tf.gather(words.origins, first))
            limits = tf.gather(
                self._cleaner.limits(codes, places),
                tf.gather(words.origins, last),
            )
            return (
                _rows(ids, words.row_splits),
                _rows(ids.with_values(starts), words.row_splits),
                _rows(ids.with_values(limits), words.row_splits),
            )


class _Cleaner(tf.Module):
    """Cleans, lower-cases and splits by the frozen tables.

    Args:
        do_lower_case: lower-case the text.
        strip_accents: strip accents.
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
        """Cleans, lower-cases and splits.

        Args:
            codes: int32 [N] code points; each row ends in a space.
            row_splits: int64 [B + 1] where the rows begin and end.

        Returns:
            the words, none of them empty.
        """
        entries = self._entries(codes)
        characters = _if_any(
            _kinds(entries) > tables.SPACE,
            self._normalize,
            _Characters(codes, entries, tf.range(tf.size(codes, tf.int64))),
        )
        return _split(characters, row_splits)

    def limits(self, codes: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        """First bytes behind characters and the accents stripped from them.

        Args:
            codes: int32 [N] code points.
            places: int64 [N] first bytes.

        Returns:
            int64 [N]; meaningless where a character vanishes.
        """
        kinds = _kinds(self._entries(codes))
        carrier = tf.cumsum(tf.cast(~_vanishing(kinds), tf.int64))
        limits = places + _utf8_lengths(codes)
        limits *= tf.cast(kinds != tables.CONTROL, tf.int64)
        return tf.gather(tf.math.segment_max(limits, carrier), carrier)

    def _entries(self, codes: tf.Tensor) -> tf.Tensor:
        """Looks code points up: int32 [N] -> int32 [N]."""
        page_starts = tf.gather(
            self._page_starts, tf.bitwise.right_shift(codes, 8)
        )
        return tf.gather(self._pages, page_starts + (codes & 255))

    def _normalize(self, characters: _Characters) -> _Characters:
        """Does all that depends on more than the character itself."""
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
            _put_marks_in_order,
            characters,
        )
        vanishing = _vanishing(_kinds(characters.entries))
        return _take(characters, _places(~vanishing))

    def _expand(self, characters: _Characters) -> _Characters:
        """Replaces those that become several by their parts."""
        codes, entries, origins = characters
        expanding = _places(_kinds(entries) == tables.EXPANDS)
        numbers = tf.gather(codes + _deltas(entries), expanding)
        # The parts of all characters stand behind the text; to each
        # character belongs a range, of itself or of its parts.
        size = tf.size(codes, tf.int64)
        ends = size + tf.gather(self._parts_ends, numbers)
        begins = ends - tf.gather(self._parts_lengths, numbers)
        where, itself = expanding[:, tf.newaxis], tf.range(size)
        splits, places = tf.raw_ops.RaggedRange(
            starts=tf.tensor_scatter_nd_update(itself, where, begins),
            limits=tf.tensor_scatter_nd_update(itself + 1, where, ends),
            deltas=tf.constant(1, tf.int64),
        )
        parts = _places(places >= size)
        parents = tf.searchsorted(splits, parts, "right", tf.int64) - 1
        return _Characters(
            tf.gather(tf.concat([codes, self._parts], 0), places),
            tf.gather(tf.concat([entries, self._parts_entries], 0), places),
            tf.gather(
                origins,
                tf.tensor_scatter_nd_update(
                    places, parts[:, tf.newaxis], parents
                ),
            ),
        )


def pack_inputs(
    segments: list[tf.RaggedTensor],
    seq_length: int | tf.Tensor,
    *,
    cls_id: int,
    sep_id: int,
    pad_id: int = 0,
) -> dict[str, tf.Tensor]:
    """Packs segments into rows `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`.

    What does not fit is cut off as `_truncate_seq_pair` of the original's
    run_classifier.py does it: a piece at a time from the end of the longer
    segment, from the second where they are of the same length.

    Args:
        segments: one or two, int32 [B, (pieces)] or [B, (words), (pieces)].
        seq_length: S, from 3 on for two segments, 2 for one.
        cls_id: id of `[CLS]`.
        sep_id: id of `[SEP]`.
        pad_id: id of what fills the rows.

    Returns:
        the encoder's inputs, int32 [B, S] each; the shape is static in S if
        `seq_length` is a Python integer.
    """
    assert len(segments) in (1, 2), len(segments)
    segments = [
        s.merge_dims(1, 2) if s.ragged_rank == 2 else s for s in segments
    ]
    lengths = [tf.cast(s.row_lengths(), tf.int64) for s in segments]
    room = tf.cast(seq_length, tf.int64) - 1 - len(segments)
    if len(segments) == 1:
        kept = [tf.minimum(lengths[0], room)]
    else:
        # Each may fill its half, and what the other leaves free.
        first = tf.maximum(room - lengths[1], room - room // 2)
        second = tf.maximum(room - lengths[0], room // 2)
        kept = [tf.minimum(lengths[0], first), tf.minimum(lengths[1], second)]
    column = tf.ones_like(lengths[0], tf.int32)[:, tf.newaxis]
    parts = [cls_id * column]
    for segment, count in zip(segments, kept):
        starts = tf.cast(segment.row_starts(), tf.int64)
        places = tf.ragged.range(starts, starts + count)
        parts += [tf.gather(segment.values, places), sep_id * column]
    rows = tf.concat(parts, axis=1)
    if tf.is_tensor(seq_length):
        shape = tf.stack([-1, seq_length])
    else:
        shape = tf.TensorShape([None, seq_length])
    ids = rows.to_tensor(pad_id, shape=shape)
    mask = tf.sequence_mask(rows.row_lengths(), seq_length, tf.int32)
    first = tf.sequence_mask(kept[0] + 2, seq_length, tf.int32)
    return {
        features.INPUT_IDS: ids,
        features.INPUT_MASK: mask,
        features.SEGMENT_IDS: mask - first,
    }


def _end_in_space(strings: tf.Tensor) -> tf.Tensor:
    """So that nothing which looks at neighbours reaches into another row."""
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


def _places(mask: tf.Tensor) -> tf.Tensor:
    """Where a mask is true: bool [N] -> int64 [...]."""
    return tf.squeeze(tf.where(mask), 1)


def _take(characters: _Characters, places: tf.Tensor) -> _Characters:
    return _Characters(*(tf.gather(field, places) for field in characters))


def _if_any(mask: tf.Tensor, function: Callable, value):
    """`function(value)` if anything in `mask` is true, else `value`."""
    return tf.cond(tf.reduce_any(mask), lambda: function(value), lambda: value)


def _utf8_lengths(codes: tf.Tensor) -> tf.Tensor:
    """Bytes of each code point: int32 [N] -> int64 [N]."""
    longer = [tf.cast(codes >= c, tf.int64) for c in (0x80, 0x800, 0x10000)]
    return 1 + tf.add_n(longer)


def _mark_final_sigmas(characters: _Characters) -> _Characters:
    """Makes capital sigmas at the ends of words become the final small one.

    As `str.lower` does: at the end is one with a cased letter before it and
    none behind it, where ignorable characters do not count.
    """
    codes, entries, origins = characters
    seen = _places(entries & tables.IGNORABLE == 0)
    cased = tf.gather(entries & tables.CASED != 0, seen)
    after_cased = tf.concat([[False], cased[:-1]], 0)
    before_cased = tf.concat([cased[1:], [False]], 0)
    sigma = tf.gather(_kinds(entries) == tables.SIGMA, seen)
    final = tf.boolean_mask(seen, sigma & after_cased & ~before_cased)
    # The final sigma is the code point before the other small one.
    one_less = tf.fill(tf.shape(final), -1 << tables.DELTA_SHIFT)
    entries = tf.tensor_scatter_nd_add(entries, final[:, tf.newaxis], one_less)
    return _Characters(codes, entries, origins)


def _put_marks_in_order(characters: _Characters) -> _Characters:
    """Moves marks to the front by class, but not past one of class 0.

    The Unicode standard, 3.11. A row ends in a space, so that marks at the
    start of the next one stay in theirs. The origins stay, ascending.
    """
    classes = _classes(characters.entries)
    passable = _vanishing(_kinds(characters.entries)) & (classes > 0)
    characters = _take(characters, _places(~passable))
    classes = tf.cast(_classes(characters.entries), tf.int64)
    blocks = tf.cumsum(tf.cast(classes == 0, tf.int64))
    order = tf.argsort(256 * blocks + classes, stable=True)
    return _take(characters, order)._replace(origins=characters.origins)


def _split(characters: _Characters, row_splits: tf.Tensor) -> _Words:
    """Splits at spaces and around what stands alone.

    Args:
        characters: none of which expands or vanishes.
        row_splits: int64 [B + 1] rows of the decoded characters.

    Returns:
        the words.
    """
    codes, entries, origins = characters
    kinds = _kinds(entries)
    inside = kinds != tables.SPACE
    borders = ~inside | (kinds == tables.ALONE)
    borders = tf.concat([[True], borders, [True]], 0)
    first = _places(inside & (borders[:-2] | borders[1:-1]))
    last = _places(inside & (borders[2:] | borders[1:-1]))
    lengths = last - first + 1
    letters = _places(inside)
    return _Words(
        letters=tf.gather(codes + _deltas(entries), letters),
        splits=tf.concat([[0], tf.cumsum(lengths)], 0),
        origins=tf.gather(origins, letters),
        row_splits=tf.searchsorted(
            tf.gather(origins, first), row_splits, out_type=tf.int64
        ),
    )


def _encode(words: _Words) -> tf.Tensor:
    """Words as strings, string [W]; too long ones longer than TF Text takes."""
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
    """Finds the letters of pieces.

    Args:
        words: W words of M letters.
        starts: int32 [W, (pieces)] first byte of each piece in its word.
        limits: int32 [W, (pieces)] the first byte behind it.

    Returns:
        places of the first and the last letter of each piece among all
        letters, both int64 [pieces].
    """
    ends = tf.cumsum(_utf8_lengths(words.letters))
    bytes_before = tf.concat([[0], ends], 0)  # int64 [M + 1]
    word_starts = tf.gather(bytes_before, words.splits)
    of_word = starts.value_rowids()
    base = tf.gather(word_starts, of_word)
    first = base + tf.cast(starts.values, tf.int64)
    behind = base + tf.cast(limits.values, tf.int64)
    # A word that is too long was made longer.
    behind = tf.minimum(behind, tf.gather(word_starts, of_word + 1))
    return (
        tf.searchsorted(bytes_before, first, out_type=tf.int64),
        tf.searchsorted(ends, behind, out_type=tf.int64),
    )


def _rows(pieces: tf.RaggedTensor, row_splits: tf.Tensor) -> tf.RaggedTensor:
    """[W, (pieces)] to [B, (words), (pieces)]."""
    return tf.RaggedTensor.from_row_splits(pieces, row_splits, validate=False)
