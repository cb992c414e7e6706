"""How a vocabulary fits words, against literals."""

from collections import Counter

from data.corpus import vocabulary_fit
from data.corpus.vocabulary_fit import Fit

TOKENS = "[PAD] [UNK] [CLS] [SEP] [MASK] a ab ##b ##c c".split()


def test_words_pieces_and_strange_characters_are_counted():
    words = Counter({"ab": 3, "abc": 2, "cb": 1, "ba": 1, "d": 5})
    # ab | ab ##c | c ##b | [UNK]: no b to start with | [UNK]
    assert vocabulary_fit.measure(words, TOKENS) == Fit(
        words=12,
        pieces=3 * 1 + 2 * 2 + 1 * 2 + 1 + 5,
        unknown=1 + 5,
        whole=3,
        characters=3 * 2 + 2 * 3 + 2 + 2 + 5,
        strange=5,
    )


def test_shares_are_told_in_one_line():
    fit = Fit(
        words=2000,
        pieces=2500,
        unknown=1,
        whole=1500,
        characters=10000,
        strange=3,
    )
    assert str(fit) == (
        "2,000 words, 1.250 pieces a word, 0.04% [UNK], 75.0% of the words "
        "are one piece, 0.030% of the characters are in no piece"
    )


def test_a_text_without_words_fits():
    assert str(vocabulary_fit.measure(Counter(), TOKENS)).startswith("0 words")


def missing(words, **options):
    options = {"min_frequency": 1, **options}
    return vocabulary_fit.missing_words(Counter(words), TOKENS, **options)


def test_the_costliest_words_come_first():
    words = {
        "ab": 97,  # one piece
        "abc": 5,  # ab ##c: saves 1 five times
        "abcb": 3,  # saves 2 three times
        "cc": 5,  # as costly as abc
        "d": 7,  # [UNK]: saves its character seven times
        "dd": 1,
    }
    assert missing(words) == ["d", "abcb", "abc", "cc", "dd"]


def test_rare_words_are_not_added():
    words = {"abc": 2, "cc": 3}
    assert missing(words, min_frequency=3) == ["cc"]
    assert missing(words, min_frequency=4) == []
