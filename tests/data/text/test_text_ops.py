"""The tables of the tokenizer in a graph, and the packing of its ids."""

import zlib

import numpy as np
import pytest
import tensorflow as tf

from bert.data import feature_names, sequences
from bert.data.text import input_ops, unicode_tables
from tests.helpers.hard_texts import assert_frozen_tables_are_computed
from tests.helpers.original_tokenization import MODES


@pytest.mark.parametrize("lower, strip", MODES)
def test_frozen_tables_are_those_of_their_unicode_version(lower, strip):
    """The first 12,544 code points; tests/long/test_text_ops.py has all."""
    assert_frozen_tables_are_computed(lower, strip, 0x3100)


def test_compressed_tables_hold_all_entries():
    for mode, checksum in (
        ((True, True), 4120009658),
        ((False, False), 884936894),
    ):
        entries = unicode_tables.entries(*mode)
        assert zlib.crc32(entries.astype("<i4")) == checksum
        starts, pages = unicode_tables.pages(entries)
        indices = starts[:, None] + np.arange(unicode_tables.PAGE)
        assert len(pages) < len(entries) // 30
        assert np.array_equal(pages[indices.ravel()], entries)


NAMES = (
    feature_names.INPUT_IDS,
    feature_names.INPUT_MASK,
    feature_names.SEGMENT_IDS,
)


def packed(a, b, seq_length, truncate="head"):
    """The rows of pairs of lists, padded; b is None for single texts."""
    rows = []
    for one, other in zip(a, b or [[]] * len(a)):
        # An empty second text has a [SEP] too.
        space = seq_length - (2 if b is None else 3)
        one, other = sequences.truncate_pair(one, other, space, truncate)
        ids, segments = [2, *one, 3], [0] * (len(one) + 2)
        if b is not None:
            ids, segments = [*ids, *other, 3], segments + [1] * (len(other) + 1)
        rest = [0] * (seq_length - len(ids))
        rows.append((ids + rest, [1] * len(ids) + rest, segments + rest))
    return rows


@pytest.mark.parametrize("truncate", sequences.TRUNCATIONS)
@pytest.mark.parametrize("seq_length", [3, 4, 8, 17])
def test_segments_are_packed_as_lists(seq_length, truncate):
    lengths = [(i, j) for i in range(11) for j in range(9)]
    a = [list(range(10, 10 + i)) for i, _ in lengths]
    b = [list(range(30, 30 + j)) for _, j in lengths]
    for segments in ([a, b], [a]):
        found = input_ops.pack_inputs(
            [tf.ragged.constant(x, tf.int32) for x in segments],
            seq_length,
            cls_id=2,
            sep_id=3,
            truncate=truncate,
        )
        expected = packed(
            *segments, *[None] * (2 - len(segments)), seq_length, truncate
        )
        for name, values in zip(NAMES, zip(*expected), strict=True):
            assert found[name].dtype == tf.int32
            assert found[name].numpy().tolist() == [*values]


def test_packing_takes_words_and_another_padding():
    words = tf.ragged.constant([[[7], [8, 9]], []], tf.int32)
    flat = tf.ragged.constant([[5], [6]], tf.int32, row_splits_dtype=tf.int32)
    found = input_ops.pack_inputs(
        [words, flat], tf.constant(7), cls_id=2, sep_id=3, pad_id=97
    )
    assert found[feature_names.INPUT_IDS].numpy().tolist() == [
        [2, 7, 8, 9, 3, 5, 3],
        [2, 3, 6, 3, 97, 97, 97],
    ]
