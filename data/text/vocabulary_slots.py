"""New words for a vocabulary, and the rows that are free for them."""

import re

from common.errors import UserError
from data.text import vocabulary


def read_words(path: str) -> list[str]:
    """Reads words to add to a vocabulary, one a line; blank lines are none.

    Raises:
        UserError: the file cannot be read, or a word has white space in it
            or stands there twice.
    """
    lines: dict[str, int] = {}
    for number, word in enumerate(vocabulary.read_lines(path), start=1):
        if word in lines or word.split() not in ([], [word]):
            raise UserError(
                f"{word!r}" + (" stands there twice" if word in lines else ""),
                path=path,
                line=number,
                expected="one word a line, every word once",
            )
        if word:
            lines[word] = number
    return list(lines)


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
    return [
        i for i, t in enumerate(tokens) if re.fullmatch(vocabulary.UNUSED, t)
    ]
