"""The fast tokenizer returns the ids of the exact one on every line."""

import random
import string

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from bert.data.text import fast_tokenization, tokenization, wordpiece_trie
from bert.data.text.tokenizer import Tokenizer
from tests.helpers.original_tokenization import MODES

ALPHABETS = (
    string.ascii_letters,
    string.printable,
    "".join(map(chr, range(0xA0, 0x250))),
    "ΑΒΓΔΣΩαβγδςσωάέήϊΰ",
    "АБВЙЁабвйёў",
    "ẤẵọựỷắẬ",
    "‐–—‘’“”„†•…‰′″€₤→∀∂−×÷",
    "\u0300\u0301\u0323\u0345",  # combining marks
    "\x00\x07\x7f\xad\u200b\u200d\ufeff\ufffd\u2028\u2029\u1680\u3000",
    "東京は日本の首都です한국어",
    "ßﬁ²½①ＡＢＣǅİıſ🙂\U00020000",
)
KINDS = np.int32, np.int64
CHARACTERS = sorted(
    {c for letters in ALPHABETS for c in letters if c.isprintable()} - {" "}
    | {c.lower() for c in string.ascii_letters}
    | set("αβγδςσωабвйе")
)


@pytest.fixture(scope="module", params=MODES)
def both(request, tmp_path_factory):
    """Fast and exact tokenizer; every character is a token."""
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += CHARACTERS + [f"##{x}" for x in CHARACTERS]
    tokens += ["the", "##ing", "tree", "a" * 7, "##" + "a" * 5]
    path.write_text("\n".join(dict.fromkeys(tokens)) + "\n", "utf-8")
    tokenizer = Tokenizer(str(path), *request.param)
    return tokenizer.fast, tokenizer.exact


def assert_equal(both, lines):
    fast, exact = both
    for line, ids in zip(lines, fast.ids_of_lines(lines), strict=True):
        expected = exact.convert_tokens_to_ids(exact.tokenize(line))
        assert ids == expected, repr(line)


def test_a_token_with_a_space_is_never_found(tmp_path):
    """Neither across two words of a line nor across two lines."""
    path = tmp_path / "vocab.txt"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "new york", "new"]
    tokens += ["xx", "ne", "##w", "##york city", "york", "##b ne", "##k"]
    path.write_text("\n".join(tokens) + "\n")
    tokenizer = Tokenizer(str(path))
    both = tokenizer.fast, tokenizer.exact
    lines = ["new york", "xxb nex", "new york city", "xxb", "nex", "new"]
    assert_equal(both, [*lines, "yorkk", "city"])


def test_random_lines(both):
    rng = random.Random(1)
    lines = []
    for _ in range(1_500):
        letters = "".join(rng.choices(ALPHABETS, k=rng.randint(1, 3))) + "   "
        lines.append("".join(rng.choices(letters, k=rng.randint(0, 23))))
    assert_equal(both, lines)


@hypothesis.settings(max_examples=50, deadline=None)
@hypothesis.given(st.lists(st.text(), max_size=7))
def test_any_lines(both, lines):
    assert_equal(both, lines)


@pytest.mark.parametrize("letter", ["a", "é", "α", "ế", "東", "."])
def test_words_of_any_length(both, letter):
    lengths = [1, 65, 66, 67, 68, 99, 100, 101, 199, 200, 201, 202, 400]
    assert_equal(both, [f"the {letter * n} tree" for n in lengths])
    assert_equal(both, [f"the{letter * n}." for n in lengths])


@pytest.mark.parametrize(
    "lines",
    [
        ["[MASK] the [UNK] [unused1]", "[CLS]", "##ing ## #"],
        # Noncharacters, and punctuation of later versions of Unicode.
        list("\ufffe\uffff\u1b4e\u1b7f\U00011b00\U0001e5ff"),
        ["the\n\ntree", "\n", "tree\udc80 the", "\ud800é"],
    ],
)
def test_hard_lines(both, lines):
    assert_equal(both, lines)


def test_no_lines_and_empty_lines(both):
    fast, _ = both
    assert fast.ids_of_lines([]) == []
    ids, ends = fast.ids_and_ends([])
    assert (ids.dtype, ends.dtype, len(ids), len(ends)) == (*KINDS, 0, 0)
    assert fast.ids_of_lines(["", " ", "\u200b"]) == [[], [], []]
    assert fast.ids_of_lines(["é", "", "the", " "])[1::2] == [[], []]


def test_blocks_and_very_long_lines(both, monkeypatch):
    line = (
        "the trees 東京は,Στου Σ.Σ+ΑΣ/ΑΣ)a 201:" + 201 * "a" + "+/the\u0301 i"
    )
    lines = ["the trees", line, "", "Στου", "the\u0301 ing", line] * 5
    lines += ["the trees"] * 60  # blocks with the same few words
    expected = both[0].ids_and_ends(lines)
    monkeypatch.setattr(fast_tokenization, "_BLOCK", 11)
    assert sum(1 for _ in fast_tokenization._blocks(lines)) > 5
    assert "".join(fast_tokenization._parts(line)) == line
    assert sum(1 for _ in fast_tokenization._parts(line)) > 3
    found = both[0].ids_and_ends(lines)
    for a, b, kind in zip(found, expected, KINDS, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == kind


@pytest.mark.parametrize("token", [257 * "a", "tree\ufffe", "a\0b", "##"])
def test_vocabularies_that_the_graph_does_not_support(tmp_path, token):
    path = tmp_path / "vocab.txt"
    tokens = "[PAD] [UNK] [CLS] [SEP] [MASK] the tree ##s".split()
    path.write_text("\n".join([*tokens, token]) + "\n", "utf-8")
    tokenizer = Tokenizer(str(path))
    both = tokenizer.fast, tokenizer.exact
    assert_equal(both, ["the trees", "", token[:1], token, f"the {token}s"])
    ids, ends = both[0].ids_and_ends(["", "the trees", "the"])
    assert (ids.tolist(), ends.tolist()) == ([5, 6, 7, 5], [0, 3, 4])
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


def test_words_of_few_letters_and_random_tokens():
    rng = random.Random(1)
    for count in (1, 3, 10, 100):
        tokens = {
            rng.choice(["", "##"])
            + "".join(rng.choices("abé😀", k=rng.randint(1, 5)))
            for _ in range(count)
        }
        words = [
            "".join(rng.choices("abé😀x", [9, 9, 9, 9, 1], k=rng.randint(0, 9)))
            for _ in range(500)
        ]
        words_of(sorted(tokens))(words)


def test_the_search_goes_back_to_the_longest_token():
    equal = words_of(["a", "abcde", "##b", "##bcd", "##c", "##x", "##cx"])
    equal(["abcdx", "abcdex", "abcx", "abcc", "abcd", "abcdef", "", "b"])


@pytest.mark.parametrize("length", [199, 200, 201, 5000])
def test_longest_words(length):
    words_of(["a", "##a", "##" + 150 * "a"])(["a", length * "a", "", "aa"])


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
