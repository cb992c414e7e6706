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


def attend_at(inputs):
    """The same at the token that is read of each sequence."""
    positions = inputs[feature_names.NEXT_SENTENCE_POSITIONS][..., None]
    return np.take_along_axis(attend(inputs), positions, 1)


def sizes_of_groups(lengths, max_tokens):
    """The tokens of each group: similar lengths, as many as fit."""
    sizes = []
    for length in sorted(lengths):
        if sizes and sizes[-1] + length <= max_tokens:
            sizes[-1] += length
        else:
            sizes.append(length)
    return sizes


@hypothesis.given(
    SEQUENCES,
    strategies.sampled_from([1, 20, 96]),
    strategies.sampled_from(["tokens", "first", "read"]),
    strategies.integers(1, 1000),
    strategies.data(),
)
def test_outputs_are_the_same_as_one_by_one(
    sequences, width, outputs, max_tokens, data
):
    lengths, read, sizes = [len(ids) for ids, _ in sequences], None, []
    if outputs == "read":
        read = [data.draw(strategies.integers(0, n - 1)) for n in lengths]

    def run(inputs):
        assert {x.dtype for x in inputs.values()} == {np.dtype(np.int32)}
        sizes.append(int(inputs[feature_names.INPUT_MASK].sum()))
        return attend(inputs) if outputs == "tokens" else attend_at(inputs)

    with mock.patch.object(sequence_packing, "_WIDTH", width):
        found = sequence_packing.map_packed(
            run, sequences, outputs != "tokens", max_tokens, read
        )
    assert sizes == sizes_of_groups(lengths, max_tokens)
    for number, (ids, segments) in enumerate(sequences):
        expected = np.array(
            [[x, s, i, sum(ids)] for i, (x, s) in enumerate(zip(ids, segments))]
        )
        if outputs != "tokens":
            expected = expected[read[number] if read else 0]
        np.testing.assert_array_equal(found[number], expected)
    assert len(found) == len(sequences)


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
