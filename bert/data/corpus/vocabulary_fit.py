"""Fit of a vocabulary to counted words, and the words that it should add."""

from collections import Counter
from collections.abc import Callable

from bert.data.corpus import pair_merging
from bert.data.text import tokenization, vocabulary, vocabulary_checks


def describe(words: Counter, tokens: list[str]) -> str:
    """Describes how a vocabulary tokenizes counted words.

    Args:
        words: Counter. Word or punctuation mark -> count.
        tokens: list of str. The vocabulary.
    """
    tokenize, total = _tokenizer(tokens), words.total()
    num_tokens = unknown = whole = 0
    for word, count in words.items():
        parts = tokenize(word)
        is_unknown = parts == [vocabulary.UNK]
        num_tokens += count * len(parts)
        unknown += count * is_unknown
        whole += count * (len(parts) == 1 and not is_unknown)

    # `max` avoids a division by zero for an empty sample.
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

    The cost of a word is its count times the tokens saved by adding it: the
    number of its tokens minus 1, or of its characters if it is `[UNK]`.

    Args:
        words: Counter. Word -> count.
        tokens: list of str. The vocabulary.
        min_frequency: int. Minimum count of a word. Words that are too long
            for an export, or that consist of symbols, are ignored too.

    Returns:
        list of str. Words that are not in the vocabulary, in alphabetical
        order for equal costs.
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
        if parts == [vocabulary.UNK]:  # the text of the word is lost
            saved = len(word)
        if saved:
            costs[word] = count * saved
    return sorted(costs, key=lambda word: (-costs[word], word))


def _tokenizer(tokens: list[str]) -> Callable[[str], list[str]]:
    ids = {token: i for i, token in enumerate(tokens)}
    return tokenization.WordpieceTokenizer(ids).tokenize
