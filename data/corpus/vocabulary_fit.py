"""Fit of a vocabulary to counted words, and the words that it should add."""

import dataclasses
from collections import Counter
from collections.abc import Callable

from data.corpus import pair_merging
from data.text import tokenization, vocabulary, vocabulary_checks


@dataclasses.dataclass(frozen=True)
class Fit:
    """Statistics of a text that is tokenized with a vocabulary.

    Attributes:
        words: number of words, including punctuation marks.
        tokens: number of tokens of all words.
        unknown: words that are `[UNK]`, each a single token.
        whole: words that are a single token other than `[UNK]`.
        characters: number of characters of all words.
        uncovered: characters that are not in the vocabulary.
    """

    words: int = 0
    tokens: int = 0
    unknown: int = 0
    whole: int = 0
    characters: int = 0
    uncovered: int = 0

    def __str__(self) -> str:
        words = max(self.words, 1)
        return (
            f"{self.words:,} words, {self.tokens / words:.3f} tokens per word, "
            f"{self.unknown / max(self.tokens, 1):.2%} [UNK], "
            f"{self.whole / words:.1%} of the words are one token, "
            f"{self.uncovered / max(self.characters, 1):.3%} of the characters "
            "are in no token"
        )


def measure(words: Counter, tokens: list[str]) -> Fit:
    """Measures a vocabulary on counted words.

    Args:
        words: word -> count.
        tokens: the vocabulary.

    Returns:
        sums over all words.
    """
    tokenize = _tokenizer(tokens)
    letters = {token.removeprefix("##") for token in tokens}
    sums: Counter = Counter()
    for word, count in words.items():
        parts = tokenize(word)
        unknown = parts == [vocabulary.UNK]
        uncovered = sum(letter not in letters for letter in word)
        sums["words"] += count
        sums["tokens"] += count * len(parts)
        sums["unknown"] += count * unknown
        sums["whole"] += count * (len(parts) == 1 and not unknown)
        sums["characters"] += count * len(word)
        sums["uncovered"] += count * uncovered
    return Fit(**sums)


def missing_words(
    words: Counter,
    tokens: list[str],
    min_frequency: int,
) -> list[str]:
    """Finds the words that a vocabulary splits, most expensive first.

    The cost of a word is its count times the number of tokens that adding it
    would save: one less than its tokens, or all characters if it is `[UNK]`.

    Args:
        words: word -> count.
        tokens: the vocabulary.
        min_frequency: rarer words are ignored, as are those that no export
            could hold, and those of symbols alone.

    Returns:
        words that are not in the vocabulary; equal costs in alphabetical
        order.
    """
    tokenize = _tokenizer(tokens)
    costs = {}
    for word, count in words.items():
        if (
            count < min_frequency
            or vocabulary_checks.is_too_long(word)
            or pair_merging.is_symbols(word)
        ):
            continue
        parts = tokenize(word)
        saved = len(parts) - 1
        if parts == [vocabulary.UNK]:
            saved = len(word)
        if saved:
            costs[word] = count * saved
    return sorted(costs, key=lambda word: (-costs[word], word))


def _tokenizer(tokens: list[str]) -> Callable[[str], list[str]]:
    ids = {token: i for i, token in enumerate(tokens)}
    return tokenization.WordpieceTokenizer(ids).tokenize
