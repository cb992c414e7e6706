"""Divides a stream of lines or paragraphs into chunks of similar size."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def divide(
    items: Iterable[Item], size: int, size_of: Callable[[Item], int]
) -> Iterator[list[Item]]:
    """Yields chunks of consecutive items; a chunk ends when it reaches `size`.

    Args:
        items: iterable. Items, read lazily.
        size: int. Minimum size of all chunks but the last.
        size_of: callable. Returns the size of an item.
    """
    held: list[Item] = []
    total = 0
    for item in items:
        held.append(item)
        total += size_of(item)
        if total >= size:
            yield held
            held, total = [], 0
    if held:
        yield held
