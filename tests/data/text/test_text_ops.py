"""The tokenizer in a graph, its tables, and the packing of its ids."""

import json
import subprocess
import sys
import zlib

import numpy as np
import pytest
import tensorflow as tf

from bert.data import feature_names, sequences
from bert.data.text import input_ops, text_ops, unicode_tables, vocabulary
from tests.helpers.hard_texts import assert_frozen_tables_are_computed
from tests.helpers.original_tokenization import MODES

SPECIAL = list(vocabulary.SPECIAL_TOKENS)
WORDPIECES = "un ##aff ##able a ##b b ##s the uber cafe hell ##o , . ß".split()


@pytest.fixture(scope="module")
def tokenizer():
    return text_ops.GraphTokenizer(SPECIAL + WORDPIECES, True)


def test_ids_are_those_of_the_vocabulary(tokenizer):
    rows = tokenizer.tokenize(["UNaffable, ÜBER zzz", "", "Cafe\u0301s"])
    assert rows.dtype == tf.int32
    assert rows.to_list() == [
        [[5, 6, 7], [17], [13], [1]],
        [],
        [[14, 11]],
    ]
    assert tokenizer.tokenize(tf.constant([], tf.string)).to_list() == []
    assert tokenizer.vocab_size == len(SPECIAL + WORDPIECES)
    ids = [tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id]
    assert [*ids, tokenizer.sep_id, tokenizer.mask_id] == [0, 1, 2, 3, 4]


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


def test_tf_data_gets_static_shapes(tokenizer):
    texts = ["unaffable, a", "the b", "zzz", "", "hello."]

    def pack(strings):
        rows = tokenizer.tokenize(strings)
        return input_ops.pack_inputs([rows, rows], 11, cls_id=2, sep_id=3)

    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(
        2, drop_remainder=True
    )
    made = dataset.map(pack)
    for name in NAMES:
        assert made.element_spec[name].shape == [2, 11]
    found = [row.tolist() for x in made for row in x["input_ids"].numpy()]
    tokens = tokenizer.tokenize(texts[:4]).merge_dims(1, 2).to_list()
    assert found == [ids for ids, _, _ in packed(tokens, tokens, 11)]


READER = """
import json, sys
import tensorflow as tf
import tensorflow_text
loaded = tf.saved_model.load(sys.argv[1])
texts = tf.constant([bytes.fromhex(t) for t in json.loads(sys.argv[2])])
ids, starts, limits = loaded.tokenize_with_offsets(texts)
assert loaded.tokenize(texts).to_list() == ids.to_list()
print(json.dumps([ids.to_list(), starts.to_list(), limits.to_list()]))
"""


@pytest.mark.slow
def test_a_saved_model_needs_neither_our_code_nor_the_vocabulary(
    tokenizer, tmp_path
):
    texts = ["UNaffable, ÜBER the\u0301 zzz".encode(), b"a\xffb", b""]
    tf.saved_model.save(tokenizer, str(tmp_path / "saved"))
    (tmp_path / "saved").rename(tmp_path / "moved")
    shown = subprocess.run(
        [
            *(sys.executable, "-I", "-c", READER, str(tmp_path / "moved")),
            json.dumps([text.hex() for text in texts]),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = tokenizer.tokenize_with_offsets(tf.constant(texts))
    assert json.loads(shown.stdout) == [rows.to_list() for rows in expected]
