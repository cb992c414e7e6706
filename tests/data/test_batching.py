"""Lengths of batches, and their order."""

import numpy as np

from bert.data import batching, bucketing


def test_lengths_are_few_and_end_with_the_longest():
    assert bucketing.bucket_lengths(128) == [*range(8, 129, 8)]
    assert bucketing.bucket_lengths(100) == [*range(8, 97, 8), 100]
    assert bucketing.bucket_lengths(384)[-6:] == [
        160,
        192,
        224,
        256,
        320,
        384,
    ]
    assert bucketing.bucket_lengths(16) == [8, 16]
    assert bucketing.bucket_lengths(7) == [7]


def test_a_negative_seed_shuffles():
    order = batching.choose(7, np.arange(7), 7, seed=-1, step=0)
    assert sorted(next(order)) == [*range(7)]
