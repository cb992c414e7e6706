"""Rows of a vocabulary that are free for new words."""

import re

_UNUSED = r"\[unused\d+\]"


def place_words(
    tokens: list[str], words: list[str]
) -> tuple[list[str], list[int]]:
    """Finds ids for new words: those of unused slots first, then new ones.

    Args:
        tokens: of the vocabulary, in order of their ids.
        words: none of which is a token.

    Returns:
        the new tokens, and the id of each word.
    """
    tokens = list(tokens)
    free = unused_slots(tokens)
    rows = []
    for word in words:
        if free:
            row = free.pop(0)
            tokens[row] = word
        else:
            row = len(tokens)
            tokens.append(word)
        rows.append(row)
    return tokens, rows


def unused_slots(tokens: list[str]) -> list[int]:
    """Ids of the `[unusedN]` tokens, in order."""
    return [i for i, t in enumerate(tokens) if re.fullmatch(_UNUSED, t)]
