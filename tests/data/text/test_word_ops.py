"""Words and windows in the graph, against Python's."""

import random
import re

import numpy as np
import tensorflow as tf

from bert.data.text import tokenization, word_ops
from bert.data.text import unicode_tables as tables
from bert.tasks.ner import windows

SPLITTER = word_ops.WordSplitter(word_ops.classes_of_text())
PLAIN = word_ops.WordSplitter(word_ops.classes_of_words())


def split(splitter, texts):
    """Splits texts; returns the words and their spans of each."""
    words = splitter.split(tf.constant(texts, tf.string))
    strings = word_ops.strings_of(words.codes, words.starts, words.limits)
    spans = zip(words.starts.numpy().tolist(), words.limits.numpy().tolist())
    flat = list(zip([s.decode() for s in strings.numpy()], spans))
    ends = words.row_splits.numpy().tolist()
    bases = words.text_splits.numpy().tolist()
    return [
        [
            (word, start - base, limit - base)
            for word, (start, limit) in flat[a:b]
        ]
        for base, a, b in zip(bases, ends, ends[1:])
    ]


def test_punctuation_is_split_off_at_the_ends():
    texts = [
        'In "New  York", he said.',
        "",
        " (U.S., AT&T) O'Brien's!? ",
        "...",
        "\u5317\u4eac is.\u4eac!a\u4eac",
        "x",
    ]
    expected = [
        'In " New York " , he said .',
        "",
        "( U.S . , AT&T ) O'Brien's ! ?",
        ". . .",
        "\u5317 \u4eac is . \u4eac ! a \u4eac",
        "x",
    ]
    found = split(SPLITTER, texts)
    assert [" ".join(x[0] for x in row) for row in found] == expected
    for text, row in zip(texts, found):
        for word, start, limit in row:
            assert text[start:limit] == word


def test_words_that_are_split_already_are_kept():
    texts = ["(a,b) \u5317\u4eac\u00a0x\u2028y  z.\n", "\t", "\u0085 a"]
    found = split(PLAIN, texts)
    assert [[x[0] for x in row] for row in found] == [
        ["(a,b)", "\u5317\u4eac\u00a0x\u2028y", "z."],
        [],
        ["\u0085", "a"],
    ]


def in_python(text):
    """Splits by regular expressions."""
    kinds = tables.entries(False, False) & tables.KIND
    marks = ""
    for character in text:
        kind = kinds[ord(character)]
        if kind == tables.SPACE:
            marks += " "
        elif kind == tables.ALONE:
            marks += "p" if tokenization.is_punctuation(character) else "a"
        else:
            marks += "i"
    spans = []
    for run in re.finditer("a|[ip]+", marks):
        front, core, _ = re.fullmatch("(p*|a)(.*?)(p*)", run.group()).groups()
        at, last = run.start(), run.end()
        spans += [(i, i + 1) for i in range(at, at + len(front))]
        at += len(front)
        if core:
            spans.append((at, at + len(core)))
        spans += [(i, i + 1) for i in range(at + len(core), last)]
    return [(text[a:b], a, b) for a, b in spans]


def test_random_texts_are_split_as_in_python():
    rng = random.Random(7)
    letters = (
        "ab\u00e9\u0301\u200b\U0001f600\u5317\u4eac.,!?'-()\"  \u00a0\t\n\u3000"
    )
    texts = [
        "".join(rng.choices(letters, k=rng.randrange(31))) for _ in range(499)
    ]
    assert split(SPLITTER, texts) == [in_python(text) for text in texts]


def test_invalid_bytes_are_dropped():
    words = SPLITTER.split(tf.constant([b"a\xff b\xc3", b"\xe4c"]))
    strings = word_ops.strings_of(words.codes, words.starts, words.limits)
    assert strings.numpy().tolist() == [b"a", b"b", b"c"]


def test_windows_are_those_of_python():
    rng = random.Random(11)
    for _ in range(31):
        size = rng.randint(1, 29)
        stride = rng.randint(1, max(1, size // 2))
        longest = windows.longest_word(size, stride)
        texts = [
            [rng.randint(1, longest) for _ in range(rng.choice([0, 1, 5, 97]))]
            for _ in range(rng.randint(1, 7))
        ]
        splits = np.cumsum([0, *map(len, texts)])
        found = word_ops.windows(
            tf.constant([n for text in texts for n in text], tf.int64),
            tf.constant(splits, tf.int64),
            size,
            stride,
        )
        rows = zip(*(x.numpy().tolist() for x in found))
        rows = [row for row in rows if row[2] < row[3]]
        expected = [
            tuple(number + base for number in window)
            for base, text in zip(splits.tolist(), texts)
            for window in windows.split_windows(text, size, stride)
        ]
        assert rows == expected
