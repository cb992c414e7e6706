"""Texts of mixed scripts, and all tokenizers beside the original."""

import unicodedata

import numpy as np
import tensorflow as tf

from bert.data.text import unicode_tables, vocabulary
from bert.data.text.casing import Casing
from bert.data.text.tokenizer import Tokenizer
from tests.helpers import original_tokenization

BLOCKS = [
    (0x20, 0x7F),
    (0xA0, 0x24F),
    (0x300, 0x36F),
    (0x370, 0x3FF),
    (0x590, 0x6FF),
    (0x900, 0x97F),
    (0xB80, 0xDFF),
    (0x1B00, 0x1B7F),
    (0x2000, 0x206F),
    (0x3000, 0x30FF),
    (0x4E00, 0x4E80),
    (0xAC00, 0xAD00),
    (0xE000, 0xE010),
    (0xFE00, 0x10000),
    (0x11100, 0x111FF),
    (0x1D150, 0x1D1FF),
    (0x1E900, 0x1E960),
    (0x2F800, 0x2FA1E),
]
# Sigmas and what the search for the end of a word skips; marks that are
# reordered, marks that block reordering, and letters that become marks.
HARD = "ΣΣΣσaA.'-:\u00ad\u200b\u0345\u0301\u02b0\u0130ǅ \u2028\x00\ufffd"
MARKS = "\u302e\u302f\U0001d165\U0001d16d\u1b44\u0301\u0f73\u0902\u0ddd"
MARKS += "\U0001d15e\U0001d160\U00016ff0\u0344\ua953\u200d"


def random_text(rng):
    characters = []
    for _ in range(rng.randrange(1, 30)):
        choice = rng.random()
        if choice < 0.3:
            characters.append(rng.choice(HARD))
        elif choice < 0.5:
            characters.append(rng.choice(MARKS))
        elif choice < 0.9:
            characters.append(chr(rng.randrange(*rng.choice(BLOCKS))))
        else:
            code = rng.randrange(0x110000 - 0x800)
            characters.append(chr(code + 0x800 * (code >= 0xD800)))
    return "".join(characters)


def random_bytes(rng):
    """UTF-8 with holes, or leading and following bytes in any order."""
    if rng.random() < 0.5:
        raw = bytearray(random_text(rng).encode())
        for _ in range(rng.randrange(1, 8)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
            del raw[rng.randrange(len(raw)) : rng.randrange(len(raw) + 1)]
            raw.append(rng.choice(b"a \xc3\xe2\xf0\x9f"))
        return bytes(raw)
    some = b"a \x80\x8f\x90\x9f\xa0\xbf\xc0\xc2\xe0\xe1\xed\xef\xf0\xf1\xf4\xf5"
    return bytes(rng.choice(some) for _ in range(rng.randrange(1, 12)))


def tokenizer_of(texts, lower, strip=None, more=()):
    """A tokenizer with each letter of the texts as a token.

    So every difference shows.
    """
    found = {
        letter
        for text in texts
        for word in original_tokenization.words(text, lower, strip)
        for letter in word
    }
    letters = sorted(found)
    tokens = [*vocabulary.SPECIAL_TOKENS, *more, *letters]
    tokens += [f"##{x}" for x in letters]
    tokens = [*dict.fromkeys(tokens)]
    return Tokenizer("vocab.txt", lower, strip, tokens=tokens)


def assert_original(tokenizer, texts):
    """Compares ids and offsets of all tokenizers with the original's.

    Args:
        tokenizer: a `Tokenizer`.
        texts: strings, or bytes that may be broken UTF-8.
    """
    mode = tokenizer.do_lower_case, tokenizer.strip_accents
    raws = [x.encode() if isinstance(x, str) else x for x in texts]
    expected = [
        original_tokenization.tokens(raw, tokenizer.vocab, *mode)
        for raw in raws
    ]

    exact, graph = tokenizer.exact, tokenizer.graph
    by_graph = graph.tokenize_with_offsets(tf.constant(raws, tf.string))
    plain = graph.tokenize(tf.constant(raws, tf.string))
    for one, other in zip(
        (plain.flat_values, *plain.nested_row_splits),
        (by_graph[0].flat_values, *by_graph[0].nested_row_splits),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    rows = zip(*(x.merge_dims(1, 2).to_list() for x in by_graph))
    for text, found, values in zip(texts, rows, expected, strict=True):
        assert [*found] == values, text
        for _ in range(2):  # computed and memoized
            ids = exact.convert_tokens_to_ids(exact.tokenize(text))
            assert ids == values[0], text

    # Offsets in strings are numbers of characters.
    strings = [raw.decode("utf-8", "ignore") for raw in raws]
    by_arrays = tokenizer.with_offsets(strings)
    ids_of_lines = tokenizer.fast.ids_of_lines(strings)
    rows = zip(strings, raws, by_arrays, ids_of_lines, expected, strict=True)
    for text, raw, found, ids, values in rows:
        assert found.ids.tolist() == ids == values[0], text
        if text.encode() == raw:
            starts, limits = (
                [len(raw[:i].decode()) for i in places] for places in values[1:]
            )
            assert found.starts.tolist() == starts, text
            assert found.limits.tolist() == limits, text


def assert_frozen_tables_are_computed(lower, strip, stop):
    strip = Casing(lower, strip).strips_accents
    table, expansions = original_tokenization.compute(lower, strip, stop)
    frozen = unicode_tables.entries(lower, strip)[:stop]
    different = np.flatnonzero(table != frozen).tolist()
    if unicodedata.unidata_version != unicode_tables.UNICODE_VERSION:
        different = original_tokenization.known("".join(map(chr, different)))
    assert not different
    parts = unicode_tables.expansions(strip)[: len(expansions)]
    assert list(expansions.values()) == parts
