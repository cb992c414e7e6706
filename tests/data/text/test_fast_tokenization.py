"""The fast tokenizer: lines, and the trie of a vocabulary."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert.data.text import tokenization, wordpiece_trie
from bert.data.text.tokenizer import Tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
KINDS = np.int32, np.int64


def assert_equal(tokens, lines):
    """Compares the ids of lines with those of the exact tokenizer."""
    tokenizer = Tokenizer("vocab.txt", True, tokens=[*SPECIAL, *tokens])
    fast, exact = tokenizer.fast, tokenizer.exact
    for line, ids in zip(lines, fast.ids_of_lines(lines), strict=True):
        expected = exact.convert_tokens_to_ids(exact.tokenize(line))
        assert ids == expected, repr(line)
    return fast


def test_a_token_with_a_space_is_never_found():
    """Neither across two words of a line nor across two lines."""
    tokens = ["new york", "new", "xx", "ne", "##w", "##york city", "york"]
    tokens += ["##b ne", "##k"]
    lines = ["new york", "xxb nex", "new york city", "xxb", "nex", "new"]
    assert_equal(tokens, [*lines, "yorkk", "city"])


@pytest.mark.parametrize("token", [257 * "a", "tree\ufffe", "a\0b", "##"])
def test_vocabularies_that_the_graph_does_not_support(token):
    lines = ["the trees", "", token[:1], token, f"the {token}s", "\udc80 the"]
    fast = assert_equal(["the", "tree", "##s", token], lines)
    ids, ends = fast.ids_and_ends(["", "the trees", "the"])
    assert (ids.tolist(), ends.tolist()) == ([5, 6, 7, 5], [0, 3, 4])
    for lines in ([], ["", " ", "\u200b"]):
        ids, ends = fast.ids_and_ends(lines)
        assert (ids.tolist(), ends.tolist()) == ([], [0] * len(lines))
        assert (ids.dtype, ends.dtype) == KINDS


def words_of(tokens):
    vocab = {token: i for i, token in enumerate(["[UNK]", *tokens])}
    exact = tokenization.WordpieceTokenizer(vocab)
    arrays = wordpiece_trie.ArrayWordpieceTokenizer(vocab)

    def assert_equal(words):
        ids, ends = arrays.ids_of_words(words)
        assert (ids.dtype, ends.dtype) == (np.int32, np.int64)
        limits = [0, *ends.tolist()]
        for word, a, b in zip(words, limits[:-1], limits[1:], strict=True):
            expected = [vocab[x] for x in exact.tokenize(word)]
            assert ids[a:b].tolist() == expected, word

    return assert_equal


LETTERS = st.text("abé😀", min_size=1, max_size=5)
TOKENS = st.sets(LETTERS | LETTERS.map("##{}".format), min_size=1)


@given(TOKENS, st.lists(st.text("abé😀x", max_size=9), max_size=30))
def test_words_of_few_letters(tokens, words):
    words_of(sorted(tokens))(words)


def test_tokens_longer_than_any_word_take_no_room(monkeypatch):
    sizes, grow = [], wordpiece_trie._grow

    def recorded(roots, classes, *others):
        sizes.append(len(classes))
        return grow(roots, classes, *others)

    monkeypatch.setattr(wordpiece_trie, "_grow", recorded)
    lengths = {"a": 200, "b": 201, "c": 3001}
    tokens = [letter * length for letter, length in lengths.items()]
    equal = words_of([*tokens, *(f"##{x}" for x in tokens), "x", "##x"])
    equal([*tokens, "x" + tokens[0], "x" + 199 * "a", "xx"])
    assert sizes == [len("[UNK]") + 2 * 200 + len("xx")]


def test_many_children_of_one_node():
    letters = [chr(0x4E00 + i) for i in range(3000)]
    tokens = [*letters, *(f"##{x}" for x in letters)]
    tokens += [f"{x}{y}" for x, y in zip(letters, reversed(letters))]
    words_of(tokens)(["".join(pair) for pair in zip(letters, letters[::-1])])


def test_many_nodes_with_most_letters_as_children(monkeypatch):
    """As in Thai: no free entries are left for all children of a node."""
    draws, losers = [], wordpiece_trie._losers

    def counted(*args):
        draws.append(None)
        assert len(draws) < 1000, "the nodes do not find addresses"
        return losers(*args)

    monkeypatch.setattr(wordpiece_trie, "_losers", counted)
    rng = random.Random(1)
    letters = [chr(0xE01 + i) for i in range(54)]
    pairs = [x + y for x in letters for y in letters]
    tokens = [x + y for x in pairs for y in rng.sample(letters, 5)]
    words = ["".join(rng.choices(letters, k=7)) for _ in range(300)]
    words_of([*letters, *(f"##{x}" for x in letters), *pairs, *tokens])(words)
