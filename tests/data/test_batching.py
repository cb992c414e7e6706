"""Batches of similar lengths, results in order."""

import random

import numpy as np
import pytest

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


@pytest.mark.parametrize("count", [0, 1, 61])
@pytest.mark.parametrize("window", [1, 18, 1000])
def test_results_are_in_the_order_of_the_examples(count, window):
    rng = random.Random(count)
    examples = [
        ([i + 1] * length, [i % 2] * length)
        for i, length in enumerate(rng.randint(1, 23) for _ in range(count))
    ]
    shapes = []

    def run(batch):
        ids, mask = batch["input_ids"], batch["input_mask"]
        shapes.append(ids.shape)
        assert ids.shape == mask.shape == batch["segment_ids"].shape
        assert ((ids > 0) == (mask > 0)).all()
        assert (batch["segment_ids"] == mask * (1 - ids % 2)).all()
        return [(row.max(), row.astype(bool).sum()) for row in ids]

    found = list(
        bucketing.map_sorted_by_length(
            iter(examples), run, [5, 11, 23], 3, window
        )
    )
    assert found == [(i + 1, len(ids)) for i, (ids, _) in enumerate(examples)]
    assert all(size <= 3 and length in (5, 11, 23) for size, length in shapes)


def test_examples_are_padded_to_the_next_length():
    examples = [([1] * n, [0] * n) for n in (5, 6, 11, 12, 1)]
    shapes = []

    def run(batch):
        shapes.append(batch["input_ids"].shape)
        return [None] * len(batch["input_ids"])

    list(bucketing.map_sorted_by_length(examples, run, [5, 11, 23], 2, 100))
    assert shapes == [(2, 5), (2, 11), (1, 23)]


def test_examples_are_read_a_window_at_a_time():
    read = []

    def examples():
        for i in range(10):
            read.append(i)
            yield [1], [0]

    results = bucketing.map_sorted_by_length(
        examples(), lambda b: [0] * len(b["input_ids"]), [3], 2, 4
    )
    next(results)
    assert len(read) == 4
