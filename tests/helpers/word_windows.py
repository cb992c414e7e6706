"""Windows of words, by the definition."""


def of_words(before: list[int], size: int, stride: int) -> list[tuple]:
    """Start, limit, first and last labelled word of each window.

    Args:
        before: number of tokens before each word, and of all words.
        size: longest window in tokens.
        stride: tokens between the starts of two windows.
    """
    count, total = len(before) - 1, before[-1]
    bounds = []
    for k in range(1 + -(-max(0, total - size) // stride)):
        wanted = min(k * stride, max(0, total - size))
        start = next(i for i, x in enumerate(before) if x >= wanted)
        limit = max(
            i for i, x in enumerate(before) if x <= before[start] + size
        )
        bounds.append((start, limit))
    edges = [0]
    for (_, limit), (start, _) in zip(bounds, bounds[1:]):
        middle = (before[start] + before[limit]) / 2
        inside = [
            i for i in range(count) if (before[i] + before[i + 1]) / 2 < middle
        ]
        edges.append(len(inside))
    edges.append(count)
    return [(*x, a, b) for x, a, b in zip(bounds, edges, edges[1:]) if a < b]
