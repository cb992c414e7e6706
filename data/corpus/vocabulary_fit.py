"""How a vocabulary fits counted words, and the words that it lacks most."""

import dataclasses
from collections import Counter

from data.text import tokenization, vocabulary


@dataclasses.dataclass(frozen=True)
class Fit:
    """What a vocabulary makes of a text.

    Attributes:
        words: of the text, punctuation marks included.
        pieces: that they are split into.
        unknown: words that are `[UNK]`, a piece each.
        whole: words that are one piece and not `[UNK]`.
        characters: of the words.
        strange: characters that are no piece by themselves.
    """

    words: int = 0
    pieces: int = 0
    unknown: int = 0
    whole: int = 0
    characters: int = 0
    strange: int = 0

    def __str__(self) -> str:
        words = max(self.words, 1)
        return (
            f"{self.words:,} words, {self.pieces / words:.3f} pieces a word, "
            f"{self.unknown / max(self.pieces, 1):.2%} [UNK], "
            f"{self.whole / words:.1%} of the words are one piece, "
            f"{self.strange / max(self.characters, 1):.3%} of the characters "
            "are in no piece"
        )


def measure(words: Counter, tokens: list[str]) -> Fit:
    """Measures a vocabulary on counted words.

    Args:
        words: word -> count.
        tokens: of the vocabulary.

    Returns:
        sums over all words.
    """
    pieces_of = _pieces_of(tokens)
    letters = {token.removeprefix("##") for token in tokens}
    sums: Counter = Counter()
    for word, count in words.items():
        pieces = pieces_of(word)
        unknown = pieces == [vocabulary.UNK]
        strange = sum(letter not in letters for letter in word)
        sums["words"] += count
        sums["pieces"] += count * len(pieces)
        sums["unknown"] += count * unknown
        sums["whole"] += count * (len(pieces) == 1 and not unknown)
        sums["characters"] += count * len(word)
        sums["strange"] += count * strange
    return Fit(**sums)


def missing_words(
    words: Counter,
    tokens: list[str],
    min_frequency: int,
) -> list[str]:
    """Finds the words that a vocabulary splits, the costliest first.

    A word costs its count times the pieces that it would save, which is one
    less than it has; a word that is `[UNK]` would save all its characters.

    Args:
        words: word -> count.
        tokens: of the vocabulary.
        min_frequency: rarer words are left out.

    Returns:
        words that are not in the vocabulary; equal costs in the words' order.
    """
    pieces_of = _pieces_of(tokens)
    costs = {}
    for word, count in words.items():
        if count < min_frequency:
            continue
        pieces = pieces_of(word)
        saved = len(pieces) - 1
        if pieces == [vocabulary.UNK]:
            saved = len(word)
        if saved:
            costs[word] = count * saved
    return sorted(costs, key=lambda word: (-costs[word], word))


def _pieces_of(tokens: list[str]):
    ids = {token: i for i, token in enumerate(tokens)}
    return tokenization.WordpieceTokenizer(ids).tokenize
