"""Sequences in shared rows: the outputs are the same as one by one."""

from unittest import mock

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from bert.data import feature_names, sequence_packing

SEQUENCES = strategies.lists(
    strategies.tuples(strategies.integers(1, 130), strategies.integers(1, 97)),
    max_size=40,
).map(
    lambda pairs: [
        ([first + i for i in range(n)], [i % 2 for i in range(n)])
        for n, first in pairs
    ]
)


def attend(inputs):
    """An engine: each token's id, segment, position, and its sequence's sum."""
    ids, sequence = (
        inputs[x] for x in (feature_names.INPUT_IDS, feature_names.SEQUENCE_IDS)
    )
    same = sequence[:, :, None] == sequence[:, None]
    same &= inputs[feature_names.INPUT_MASK][:, None] > 0
    own = (
        inputs[feature_names.SEGMENT_IDS],
        inputs[feature_names.POSITION_IDS],
    )
    sums = (same * ids[:, None]).sum(-1)
    return np.stack([ids, *own, sums], -1).astype(np.float32)


def attend_at_first(inputs):
    """The same at the first token of each sequence."""
    positions = inputs[feature_names.NEXT_SENTENCE_POSITIONS][..., None]
    return np.take_along_axis(attend(inputs), positions, 1)


@hypothesis.given(
    SEQUENCES, strategies.sampled_from([1, 20, 96]), strategies.booleans()
)
def test_outputs_are_the_same_as_one_by_one(sequences, width, is_pooled):
    run = attend_at_first if is_pooled else attend
    with mock.patch.object(sequence_packing, "_WIDTH", width):
        found = sequence_packing.map_packed(run, sequences, is_pooled, 500)
    assert len(found) == len(sequences)
    for (ids, segments), output in zip(sequences, found):
        expected = np.array(
            [[x, s, i, sum(ids)] for i, (x, s) in enumerate(zip(ids, segments))]
        )
        np.testing.assert_array_equal(
            output, expected[0] if is_pooled else expected
        )


@hypothesis.given(SEQUENCES.filter(bool))
def test_no_cell_is_used_twice(sequences):
    batch = sequence_packing.pack(sequences)
    shape = batch.inputs[feature_names.INPUT_IDS].shape
    used = np.zeros(shape, int)
    for row, start, length in zip(batch.rows, batch.starts, batch.lengths):
        used[row, start : start + length] += 1
    np.testing.assert_array_equal(used, batch.inputs[feature_names.INPUT_MASK])
    assert used.sum() == sum(len(ids) for ids, _ in sequences)
    for name, x in batch.inputs.items():
        assert x.dtype == np.int32
        assert name == feature_names.NEXT_SENTENCE_POSITIONS or x.shape == shape
        assert (
            name == feature_names.NEXT_SENTENCE_POSITIONS
            or not x[used == 0].any()
        )


def test_sequences_are_distributed_in_alternating_directions(monkeypatch):
    monkeypatch.setattr(sequence_packing, "_WIDTH", 9)
    monkeypatch.setattr(sequence_packing, "_MULTIPLE", 1)
    sequences = [([1] * n, [0] * n) for n in (3, 7, 2, 6, 5, 4)]
    inputs = sequence_packing.pack(sequences).inputs
    assert inputs[feature_names.POSITION_IDS].tolist() == [
        [0, 1, 2, 3, 4, 5, 6, 0, 1],
        [0, 1, 2, 3, 4, 5, 0, 1, 2],
        [0, 1, 2, 3, 4, 0, 1, 2, 3],
    ]
    first = inputs[feature_names.NEXT_SENTENCE_POSITIONS]
    assert first.tolist() == [[0, 7], [0, 6], [0, 5]]


@pytest.mark.parametrize("count", [1, 32])
def test_little_padding_is_computed(count):
    lengths = np.random.default_rng(0).integers(4, 60, count).tolist()
    sequences = [([1] * n, [0] * n) for n in lengths]
    ids = sequence_packing.pack(sequences).inputs[feature_names.INPUT_IDS]
    assert sum(lengths) > 0.9 * ids.size


def test_many_sequences_are_computed_some_tokens_at_a_time():
    """A sequence that is longer than the limit is computed alone."""
    sequences = [([1] * n, [0] * n) for n in (*range(1, 60), 700)]
    sizes = []

    def run(inputs):
        sizes.append(inputs[feature_names.INPUT_MASK].sum())
        return attend(inputs)

    sequence_packing.map_packed(run, sequences, False, 400)
    assert len(sizes) > 3 and sizes[-1] == 700 and max(sizes[:-1]) <= 400
