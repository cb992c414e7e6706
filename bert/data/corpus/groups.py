"""Sampling rates of the languages of a corpus, or of other groups.

Large groups are sampled less often than in proportion and small ones more
often, as for the multilingual models of the original release: a group with
share p of the text gets p**S / sum(p**S) of the records, S = 0.7.
"""


def passes(
    sizes: dict[str, int], dupe_factor: int, smoothing: float
) -> dict[str, float]:
    """Computes the number of passes over each group.

    The passes cover as much text as `dupe_factor` passes over everything.

    Args:
        sizes: bytes of each group.
        dupe_factor: number of passes over the corpus without groups.
        smoothing: S; 1 keeps the shares, 0 makes them equal.

    Returns:
        passes over each group, in general not whole numbers.
    """
    total = sum(sizes.values())
    shares = {name: size / total for name, size in sizes.items()}
    weights = {name: share**smoothing for name, share in shares.items()}
    whole = sum(weights.values())

    # A group's share of the records, divided by its share of the text.
    return {
        name: dupe_factor * weights[name] / whole / shares[name]
        for name in sizes
    }
