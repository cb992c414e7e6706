"""Packs several instances into a row, to reduce padding.

ids         [CLS] a a [SEP] b [SEP]  [CLS] c [SEP] d d [SEP]  0 0
sequences     1   1 1   1   1   1      2   2   2   2 2   2    0 0
positions     0   1 2   3   4   5      0   1   2   3 4   5    0 0

As in Krell et al. 2021 (arXiv:2107.02027), but with first-fit packing in random
order. Attention must be restricted to tokens of the same sequence.
"""

import numpy as np

from bert.data.pretraining import masking
from bert.data.pretraining.settings import InstanceSettings


def max_sequences_per_row(max_seq_length: int) -> int:
    """Returns K, the maximum number of instances in a row."""
    return max(2, max_seq_length // 64)


def pack(
    lengths: np.ndarray, settings: InstanceSettings, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Adds each instance to the first row with enough space for it.

    A row has space for S tokens, P masked positions and K instances.

    Args:
        lengths: int64 [n]. Number of tokens of each instance, at most S.
            Instances are shuffled, so that adjacent instances of the corpus
            are usually in different rows.
        settings: InstanceSettings. Has S and P.
        rng: np.random.Generator. Source of the order.

    Returns:
        (int64 [n], int64 [R]). Instances in the order of the rows, and the end
        of each row, counted in instances.
    """
    order = rng.permutation(len(lengths))
    rows = _first_fit(lengths[order], settings)
    sorted_by_row = order[np.argsort(rows, kind="stable")]
    return sorted_by_row, np.cumsum(np.bincount(rows))


def _first_fit(lengths: np.ndarray, settings: InstanceSettings) -> np.ndarray:
    """Returns the row of each instance, assigned in this order.

    The number of masks depends only on the length, so the free space of a row
    is one number: the length of the longest instance that fits. These numbers
    are in a tree: leaf i is row i, and each node is the maximum of its two
    children.
    """
    most = settings.max_predictions_per_seq
    masks = masking.count_masks(
        np.arange(settings.max_seq_length + 1), settings
    )
    # Longest instance whose masks fit, for each number of free masks.
    longest = np.searchsorted(masks, np.arange(most + 1), side="right") - 1
    longest, masks = np.maximum(longest, 0).tolist(), masks.tolist()

    leaves = 1 << (len(lengths) - 1).bit_length() if len(lengths) else 1
    space = [settings.max_seq_length] * (2 * leaves)

    # Free tokens, masks and instances of each row.
    left: list[list[int]] = []
    rows = []
    for length in lengths.tolist():
        node = 1
        while node < leaves:
            node *= 2
            if space[node] < length:
                node += 1

        row = node - leaves
        rows.append(row)
        if row == len(left):
            left.append(
                [
                    settings.max_seq_length,
                    most,
                    max_sequences_per_row(settings.max_seq_length),
                ]
            )

        free = left[row]
        free[0] -= length
        free[1] -= masks[length]
        free[2] -= 1
        space[node] = min(free[0], longest[free[1]]) if free[2] else 0

        # Update the maxima above the leaf until one does not change.
        while node > 1:
            node //= 2
            value = max(space[2 * node], space[2 * node + 1])
            if value == space[node]:
                break
            space[node] = value
    return np.array(rows, np.int64)
