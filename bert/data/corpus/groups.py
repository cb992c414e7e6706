"""Sampling rates of the languages, or other groups, of a corpus.

Small groups are sampled more often than in proportion to their size, as for
the multilingual models of the original release. A group with the fraction p of
the text gets the fraction p**S / sum(p**S) of the records, with S = 0.7.
"""


def passes(
    sizes: dict[str, int], dupe_factor: int, smoothing: float
) -> dict[str, float]:
    """Computes the number of passes over each group.

    The passes cover as much text as `dupe_factor` passes over the corpus.

    Args:
        sizes: dict. Name of a group -> size in bytes.
        dupe_factor: int. Number of passes over a corpus without groups.
        smoothing: float. Exponent S: 1 keeps the proportions, 0 makes all
            groups equal.

    Returns:
        dict. Name of a group -> number of passes, usually fractional.
    """
    total = sum(sizes.values())
    fractions = {name: size / total for name, size in sizes.items()}
    weights = {
        name: fraction**smoothing for name, fraction in fractions.items()
    }
    whole = sum(weights.values())

    # Fraction of the records divided by fraction of the text.
    return {
        name: dupe_factor * weights[name] / whole / fractions[name]
        for name in sizes
    }
