"""Division of a stream of lines or paragraphs into parts of similar size."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def divide(
    items: Iterable[Item], size: int, size_of: Callable[[Item], int]
) -> Iterator[list[Item]]:
    """Yields consecutive items; a chunk ends where it reaches a size.

    Args:
        items: any number of them, read lazily.
        size: of a chunk, which only the last one may not reach.
        size_of: size of an item.
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
