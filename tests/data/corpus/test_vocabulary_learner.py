"""The same counted words give the same vocabulary."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.common.errors import UserError
from bert.data.corpus import vocabulary_learner
from bert.data.text import tokenization


def test_special_tokens_have_the_ids_of_the_released_files():
    tokens = vocabulary_learner.learn_vocabulary(
        Counter({"ab": 3, "b": 1}), 109
    )
    assert tokens[0] == "[PAD]"
    assert tokens[1:100] == [f"[unused{i}]" for i in range(99)]
    assert tokens[100:104] == ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert tokens[104:] == ["a", "b", "##b", "ab"]


def learn(words, size=97, **options):
    """Learns a vocabulary; returns the tokens after the special ones."""
    options = {"num_unused": 0, **options}
    return vocabulary_learner.learn_vocabulary(Counter(words), size, **options)[
        5:
    ]


@pytest.mark.parametrize(
    "options, tokens",
    [
        ({}, "a b c ##a ##b ##c ##bc abc"),
        ({"min_frequency": 7}, "a b c ##a ##b ##c ##bc abc"),
        ({"min_frequency": 8}, "a b c ##a ##b ##c ##bc"),
        ({"min_frequency": 9}, "a b c ##a ##b ##c"),
        ({"min_frequency": 1}, "a b c ##a ##b ##c ##bc abc ca cbc"),
        ({"size": 12}, "a b c ##a ##b ##c ##bc"),
        ({"size": 11}, "a b c ##a ##b ##c"),
        ({"limit_alphabet": 2}, "b c ##b ##c"),
        ({"limit_alphabet": 2, "min_frequency": 1}, "b c ##b ##c cb cbc"),
    ],
)
def test_frequent_neighbours_are_merged(options, tokens):
    words = {"abc": 7, "cbc": 1, "ca": 1, "a": 1, "b": 2}
    assert learn(words, **options) == tokens.split()


def test_borders_of_tables_are_no_tokens():
    """The marks of Thai are parts of words."""
    words = {"──": 9, "a──": 9, "กู้": 9}
    found = {token for token in learn(words) if token[-2:-1] not in ("", "#")}
    assert found == {"a─", "a──", "กู", "กู้"}


def test_rare_characters_are_dropped_in_code_point_order():
    # a and c are equally rare: the smaller code point is kept.
    words = {"b": 5, "c": 3, "a": 3}
    assert learn(words, limit_alphabet=2) == ["a", "b"]


@pytest.mark.parametrize("size", [5, 10])
def test_too_small_a_size_names_what_is_needed(size):
    with pytest.raises(UserError) as error:
        learn({"abc": 7, "ba": 1, "c": 1}, size=size)
    assert str(error.value) == (
        f"--vocab_size={size} is too small; expected at least 11: "
        "5 special and unused tokens and 6 characters"
    )


def test_a_corpus_without_words_is_rejected():
    with pytest.raises(UserError, match="the corpus has no word"):
        learn({})


WORDS = st.dictionaries(
    st.text("abcdeßé推", min_size=1, max_size=7),
    st.integers(1, 29),
    min_size=1,
    max_size=23,
)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(WORDS, st.integers(21, 61), st.integers(1, 8))
def test_kept_words_have_tokens_and_the_size_is_respected(
    words, size, alphabet
):
    tokens = vocabulary_learner.learn_vocabulary(
        Counter(words), size, num_unused=0, limit_alphabet=alphabet
    )
    assert len(tokens) == len(set(tokens)) <= size
    vocab = {token: i for i, token in enumerate(tokens)}
    tokenizer = tokenization.WordpieceTokenizer(vocab)
    kept = {token[-1] for token in tokens[5:]}
    assert len(kept) <= alphabet
    for word in words:
        known = "[UNK]" not in tokenizer.tokenize(word)
        assert known == (set(word) <= kept)


def test_no_token_is_longer_than_exports_allow():
    """256 bytes: 85 letters of Thai."""
    word = "".join(map(chr, range(0x0E01, 0x0E30))) * 2
    tokens = vocabulary_learner.learn_vocabulary(Counter({word: 99}), 1000)
    assert len(word.encode()) > 256
    assert max(len(token.removeprefix("##")) for token in tokens) > 40
    assert word not in tokens
