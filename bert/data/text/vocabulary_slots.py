"""Adds words to a vocabulary, first in its unused slots."""

import re

from bert.common import text_lines
from bert.common.errors import UserError
from bert.data.text import vocabulary


def read_words(path: str) -> list[str]:
    """Reads words to add to a vocabulary, one per line; skips blank lines.

    Args:
        path: str. The file.

    Returns:
        list of str. The words, in order.

    Raises:
        UserError: The file cannot be read, or a line has several words or a
            duplicate word.
    """
    lines: dict[str, int] = {}
    for number, line in text_lines.lines(path):
        word = line.strip()
        if word in lines or word.split() not in ([], [word]):
            raise UserError(
                f"duplicate word {word!r}" if word in lines else f"{word!r}",
                path=path,
                line=number,
                expected="one word per line, each word once",
            )
        if word:
            lines[word] = number

    return list(lines)


def add_words(
    tokens: list[str], words: list[str]
) -> tuple[list[str], list[int]]:
    """Fills unused slots with words, then appends the other words.

    Args:
        tokens: list of str. Tokens of the vocabulary, in order of their ids.
        words: list of str. Words to add, which are not tokens yet.

    Returns:
        (list of str, list of int). The new tokens, and the id of each added
        word.
    """
    # Unused slots first, as they already have embeddings.
    free = unused_slots(tokens)
    more = range(len(tokens), len(tokens) + len(words) - len(free))
    ids = [*free, *more][: len(words)]

    # This is a copy; the caller's list is not changed.
    extended = [*tokens, *words[len(free) :]]
    for i, word in zip(ids, words):
        extended[i] = word
    return extended, ids


def unused_slots(tokens: list[str]) -> list[int]:
    """Returns the ids of the `[unusedN]` tokens, in order."""
    return [
        i for i, t in enumerate(tokens) if re.fullmatch(vocabulary.UNUSED, t)
    ]
