"""The graph tokenizer returns the ids of bert/data/text/tokenization.py."""

import json
import random
import subprocess
import sys
import zlib

import numpy as np
import pytest
import tensorflow as tf

from bert.data import feature_names, sequences
from bert.data.text import (
    input_ops,
    text_ops,
    tokenization,
    unicode_tables,
    vocabulary,
)
from tests.helpers import original_tokenization
from tests.helpers.hard_texts import (
    assert_frozen_tables_are_computed,
    differences,
    pair,
    random_bytes,
    random_text,
)
from tests.helpers.original_tokenization import MODES

SPECIAL = list(vocabulary.SPECIAL_TOKENS)
WORDPIECES = "un ##aff ##able a ##b b ##s the uber cafe hell ##o , . ß".split()


@pytest.fixture(scope="module")
def tokenizer():
    return text_ops.GraphTokenizer(SPECIAL + WORDPIECES, True)


@pytest.mark.parametrize("lower, strip", MODES)
def test_ids_are_those_of_python(lower, strip, tmp_path):
    """Where other tokenizers differ, of many characters, and of bytes."""
    texts = [
        *("straße", "\u1e9e", "ﬁne", "x²", "①", "½", "ＡＢＣ", "ΟΔΟΣ ΣΑΣ"),
        *(
            "ΟΔΟΣ.ΣΑΣ",
            "aΣ\u0301",
            "aΣ\u0301b",
            "Σ",
            "aΣ\u200bb",
            "aΣ'",
            "Σ\x00",
        ),
        *("café", "cafe\u0301", "한국어", "a\u00adb", "a\u200bb", "a\u200db"),
        *("a\x00b", "\x00", "a\ufffdb", "a\x85b", "a\u2028b", "a\u1680b"),
        *("a\xa0b", "a\u3000b", "a\ue000b", "a\x1cb", "a\tb\nc\rd", "İi"),
        *("[MASK] [unk] [CLS]", "##a #", "ab推c", "\U0002b820\uf900", "`^$+"),
        *("", " ", " a", "a  b ", "\u037e\u1fef", "\ufeffa", "\ufffe\uffff"),
        *("\u302e\U0001d165", "\U0001d165\u0902\u302e", "a\u302e\u0301\u1b44"),
        *("\U0001d160\u1b44", "\u0301", "a\u0301 \u0301b", "\U0010ffff"),
        *(b"a\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80a", b"\xf0\x9f\x92 "),
    ]
    codes = [*range(0x80), *range(lower, 0x30000, 67), *range(0xE0000, 0xE0200)]
    texts += [
        f"a{chr(code)}b aΣ{chr(code)}"
        for code in codes
        if not 0xD800 <= code < 0xE000
    ]
    rng = random.Random(lower)
    for _ in range(1000):
        texts += [random_text(rng), random_bytes(rng)]
    assert differences(texts, lower, tmp_path, strip) == []


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


def test_a_word_may_have_200_letters(tmp_path):
    """Accents do not count."""
    texts = [
        text
        for letter in ("a", "\u0430", "推", "\U00010428", "é", "e\u0301")
        for text in (
            letter * 200,
            letter * 201,
            f"a {letter * 900} b{letter * 200}",
        )
    ]
    assert differences(texts, True, tmp_path) == []


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


def decoded(raw):
    """Decodes UTF-8: characters, their first bytes and the bytes after them."""
    found, at = [], 0
    while at < len(raw):
        try:
            text, skipped = raw[at:].decode(), 0
        except UnicodeDecodeError as error:
            text = raw[at : at + error.start].decode()
            skipped = error.end - error.start
        for character in text:
            size = len(character.encode())
            found.append((character, at, at + size))
            at += size
        at += skipped
    return found


def plain_spans(raw, lower, strip):
    """Computes the first bytes of all letters, and the bytes after them."""
    basic = tokenization.BasicTokenizer(lower, strip)
    found = []  # [its letters, first byte, the byte after it]
    for character, start, limit in decoded(raw):
        clean = basic.clean(character)
        letters = original_tokenization.normalize(
            clean, lower, basic.strip_accents
        )
        if clean and not letters and found:
            found[-1][2] = limit
        elif letters:
            count = sum(not c.isspace() for c in letters)
            found.append([count, start, limit])
    starts = [start for count, start, _ in found for _ in range(count)]
    limits = [limit for count, _, limit in found for _ in range(count)]
    return starts, limits


@pytest.mark.parametrize("lower, strip", MODES)
def test_offsets_are_those_of_the_letters(lower, strip, tmp_path):
    rng = random.Random(lower)
    texts = [random_text(rng).encode() for _ in range(500)]
    texts += [random_bytes(rng) for _ in range(500)]
    graph, _ = pair(texts, lower, tmp_path, strip)
    ids, starts, limits = graph.tokenize_with_offsets(tf.constant(texts))
    plain = graph.tokenize(tf.constant(texts))
    assert np.array_equal(ids.flat_values, plain.flat_values)
    for mine, others in zip(ids.nested_row_splits, plain.nested_row_splits):
        assert np.array_equal(mine, others)
    assert starts.dtype == limits.dtype == tf.int64
    starts = starts.merge_dims(1, 2).to_list()
    limits = limits.merge_dims(1, 2).to_list()
    for text, first, behind in zip(texts, starts, limits):
        assert (first, behind) == plain_spans(text, lower, strip), text
        assert first == sorted(first), text
        assert behind == sorted(behind), text


@pytest.mark.parametrize(
    "text, slices",
    [
        ("UNaffable, a", ["UN", "aff", "able", ",", "a"]),
        (" \u3000Über.", ["Über", "."]),
        ("Cafe\u0301s", ["Cafe\u0301", "s"]),
        ("a\u200bb \u200bb\u200b", ["a", "b", "b"]),
        ("un\u200baff", ["un", "aff"]),
        ("unable xyz\u0301 the", ["un", "able", "xyz\u0301", "the"]),
        ("he\u00adllo", ["he\u00adll", "o"]),
        ("b " + "é" * 201 + " b", ["b", "é" * 201, "b"]),
        ("b" + "推" * 3 + "a" * 900 + ".", ["b", *"推推推", "a" * 900, "."]),
    ],
)
def test_offsets_slice_the_source_of_each_token(tokenizer, text, slices):
    raw = text.encode()
    _, starts, limits = tokenizer.tokenize_with_offsets([raw])
    assert [
        raw[start:limit].decode()
        for start, limit in zip(
            starts.merge_dims(1, 2)[0].numpy(),
            limits.merge_dims(1, 2)[0].numpy(),
        )
    ] == slices


def plain_pack(a, b, seq_length):
    """The original's `_truncate_seq_pair` and the assembly after it."""
    a, b = list(a), None if b is None else list(b)
    space = seq_length - (2 if b is None else 3)
    while len(a) + len(b or []) > space:
        if b is None or len(a) > len(b):
            a.pop()
        else:
            b.pop()
    ids = [2, *a, 3] + ([] if b is None else [*b, 3])
    types = [0] * (len(a) + 2) + ([] if b is None else [1] * (len(b) + 1))
    padding = [0] * (seq_length - len(ids))
    return ids + padding, [1] * len(ids) + padding, types + padding


NAMES = (
    feature_names.INPUT_IDS,
    feature_names.INPUT_MASK,
    feature_names.SEGMENT_IDS,
)


@pytest.mark.parametrize("seq_length", [3, 4, 8, 17])
def test_packing_of_all_lengths(seq_length):
    lengths = [(i, j) for i in range(8) for j in range(8)]
    firsts = [list(range(10, 10 + i)) for i, _ in lengths]
    seconds = [list(range(30, 30 + j)) for _, j in lengths]
    one = tf.ragged.constant(firsts, tf.int32)
    two = tf.ragged.constant(seconds, tf.int32)
    for segments, expected in (
        ([one, two], zip(firsts, seconds)),
        ([one], ((first, None) for first in firsts)),
    ):
        packed = input_ops.pack_inputs(segments, seq_length, cls_id=2, sep_id=3)
        rows = [plain_pack(a, b, seq_length) for a, b in expected]
        for number, name in enumerate(NAMES):
            assert packed[name].dtype == tf.int32
            assert packed[name].numpy().tolist() == [r[number] for r in rows]


@pytest.mark.parametrize("truncate", ["tail", "head_tail"])
def test_packing_keeps_the_same_tokens_as_lists(truncate):
    lengths = [(i, j) for i in range(11) for j in range(9)]
    firsts = [list(range(10, 10 + i)) for i, _ in lengths]
    seconds = [list(range(30, 30 + j)) for _, j in lengths]
    packed = input_ops.pack_inputs(
        [tf.ragged.constant(x, tf.int32) for x in (firsts, seconds)],
        11,
        cls_id=2,
        sep_id=3,
        truncate=truncate,
    )
    for ids, a, b in zip(
        packed[feature_names.INPUT_IDS].numpy(), firsts, seconds
    ):
        a, b = sequences.truncate_pair(a, b, 8, truncate)
        expected = [2, *a, 3, *b, 3]
        assert ids.tolist() == expected + [0] * (11 - len(expected))


def test_packing_takes_words_and_another_padding():
    words = tf.ragged.constant([[[7], [8, 9]], []], tf.int32)
    flat = tf.ragged.constant([[5], [6]], tf.int32, row_splits_dtype=tf.int32)
    packed = input_ops.pack_inputs(
        [words, flat], tf.constant(7), cls_id=2, sep_id=3, pad_id=97
    )
    assert packed[feature_names.INPUT_IDS].numpy().tolist() == [
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
    packed = dataset.map(pack)
    for name in NAMES:
        assert packed.element_spec[name].shape == [2, 11]
    found = [row.tolist() for b in packed for row in b["input_ids"].numpy()]
    tokens = tokenizer.tokenize(texts[:4]).merge_dims(1, 2).to_list()
    assert found == [plain_pack(row, row, 11)[0] for row in tokens]


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
def test_a_saved_model_needs_neither_our_code_nor_the_vocabulary(tmp_path):
    rng = random.Random(0)
    texts = [random_text(rng).encode() for _ in range(23)] + [b"a\xffb", b""]
    graph, _ = pair(texts, True, tmp_path)
    tf.saved_model.save(graph, str(tmp_path / "saved"))
    (tmp_path / "letters.txt").unlink()
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
    expected = graph.tokenize_with_offsets(tf.constant(texts))
    assert json.loads(shown.stdout) == [rows.to_list() for rows in expected]
