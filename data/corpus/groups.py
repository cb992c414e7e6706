"""Languages of a corpus, or other groups, each with its share of the records.

Large ones are taken less often than they would be and small ones more often,
as for the multilingual models of the original release: a group with share p
of the text gets p**S / sum(p**S) of the records, S = 0.7.
"""


def copies(
    sizes: dict[str, int], dupe_factor: int, smoothing: float
) -> dict[str, float]:
    """How often each group is gone through.

    The text that is gone through is as much as without groups.

    Args:
        sizes: bytes of each group.
        dupe_factor: how often the whole corpus would be gone through.
        smoothing: S; 1 leaves the shares as they are, 0 makes them equal.

    Returns:
        times for each group, not whole numbers.
    """
    total = sum(sizes.values())
    shares = {name: size / total for name, size in sizes.items()}
    weights = {name: share**smoothing for name, share in shares.items()}
    whole = sum(weights.values())
    return {
        name: dupe_factor * weights[name] / whole / shares[name]
        for name in sizes
    }
