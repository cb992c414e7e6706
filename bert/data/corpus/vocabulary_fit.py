"""Fit of a vocabulary to counted words, and the words that it should add."""

from collections import Counter
from collections.abc import Callable

from bert.data.corpus import pair_merging
from bert.data.text import tokenization, vocabulary, vocabulary_checks


def describe(words: Counter, tokens: list[str]) -> str:
    """Describes how a vocabulary tokenizes counted words.

    Args:
        words: word -> count, of words and punctuation marks.
        tokens: the vocabulary.
    """
    tokenize, total = _tokenizer(tokens), words.total()
    num_tokens = unknown = whole = 0
    for word, count in words.items():
        parts = tokenize(word)
        is_unknown = parts == [vocabulary.UNK]
        num_tokens += count * len(parts)
        unknown += count * is_unknown
        whole += count * (len(parts) == 1 and not is_unknown)

    # A sample may be empty; max avoids a division by zero.
    return (
        f"{total:,} words, {num_tokens / max(total, 1):.3f} tokens per word, "
        f"{unknown / max(num_tokens, 1):.2%} [UNK], "
        f"{whole / max(total, 1):.1%} of the words are one token"
    )


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
        if parts == [vocabulary.UNK]:  # the text itself was lost
            saved = len(word)
        if saved:
            costs[word] = count * saved
    return sorted(costs, key=lambda word: (-costs[word], word))


def _tokenizer(tokens: list[str]) -> Callable[[str], list[str]]:
    ids = {token: i for i, token in enumerate(tokens)}
    return tokenization.WordpieceTokenizer(ids).tokenize
