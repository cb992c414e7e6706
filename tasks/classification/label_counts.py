"""The counts of the labels for training, and what is unusual about them."""

from collections.abc import Iterable, Iterator, Sequence

_SHOWN = 20  # labels of a message
_FEW = 5  # examples of a label


def describe(
    path: str, names: Sequence[str], counts: Sequence[int]
) -> Iterator[str]:
    """Yields a line with the labels of a file, and warnings about them.

    Args:
        path: the file.
        names: names of the C labels.
        counts: number of examples of each.
    """
    common = sorted(zip(names, counts, strict=True), key=lambda x: -x[1])
    yield f"labels: {_first(f'{name} {count:,}' for name, count in common)}"
    rare = [repr(name) for name, count in common if count < _FEW]
    if rare:
        yield f"warning: {path}: fewer than {_FEW} examples of {_first(rare)}"
    spellings: dict[str, list[str]] = {}
    for name, _ in common:
        key = "".join(name.split()).casefold()
        spellings.setdefault(key, []).append(repr(name))
    for alike in spellings.values():
        if len(alike) > 1:
            yield (
                f"warning: {path}: the labels {', '.join(alike)} differ in "
                "case or blanks only"
            )


def _first(names: Iterable[str]) -> str:
    """The first names for a message, and their number if there are more."""
    names = list(names)
    more = f", ... ({len(names)})" * (len(names) > _SHOWN)
    return ", ".join(names[:_SHOWN]) + more
