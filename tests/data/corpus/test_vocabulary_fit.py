"""Fit of a vocabulary to words, against literals."""

from collections import Counter

from bert.data.corpus import vocabulary_fit

TOKENS = "[PAD] [UNK] [CLS] [SEP] [MASK] a ab ##b ##c c".split()


def test_words_and_tokens_are_counted():
    words = Counter({"ab": 3, "abc": 2, "cb": 1, "ba": 1, "d": 5})
    # ab | ab ##c | c ##b | [UNK]: no b to start with | [UNK]
    assert vocabulary_fit.describe(words, TOKENS) == (
        "12 words, 1.250 tokens per word, 40.00% [UNK], 25.0% of the words "
        "are one token"
    )


def test_a_text_without_words_fits():
    assert vocabulary_fit.describe(Counter(), TOKENS).startswith("0 words")


def missing(words, **options):
    options = {"min_frequency": 1, **options}
    return vocabulary_fit.missing_words(Counter(words), TOKENS, **options)


def test_the_most_expensive_words_come_first():
    words = {
        "ab": 97,  # one token
        "abc": 5,  # ab ##c: saves 1 five times
        "abcb": 3,  # saves 2 three times
        "cc": 5,  # costs as much as abc
        "d": 7,  # [UNK]: saves its character seven times
        "dd": 1,
    }
    assert missing(words) == ["d", "abcb", "abc", "cc", "dd"]


def test_rare_words_are_not_added():
    words = {"abc": 2, "cc": 3}
    assert missing(words, min_frequency=3) == ["cc"]
    assert missing(words, min_frequency=4) == []


def test_words_that_no_export_could_hold_are_not_added():
    words = Counter({"ก" * 85: 9, "ก" * 86: 9})
    found = vocabulary_fit.missing_words(words, ["[UNK]"], 1)
    assert found == ["ก" * 85]
