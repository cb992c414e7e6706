"""Texts in shared rows: the same answers as alone."""

import numpy as np
import pytest
import tensorflow as tf

from bert.data import features
from bert.modeling import task_models
from bert.serving import shared_rows
from tests.helpers import small
from tests.helpers.small import rows_of

SIZE = 3


@pytest.fixture(scope="module")
def networks():
    """The same classifier for rows of one text and of several."""
    alone, shared = (
        task_models.build_classifier(small.config(), SIZE, packed=packed)
        for packed in (False, True)
    )
    shared.set_weights(alone.get_weights())
    return [
        lambda inputs, model=model: model(inputs, training=False)["logits"]
        for model in (alone, shared)
    ]


def packed(monkeypatch, lengths, width, row):
    """Inputs of the network for such texts, in rows of `row` tokens."""
    monkeypatch.setattr(shared_rows, "_ROW", row)
    seen = []

    def logits_of(inputs):
        seen.append({name: np.array(x) for name, x in inputs.items()})
        first = inputs[features.NEXT_SENTENCE_POSITIONS]
        return tf.zeros([*first.shape, 1])

    shared_rows.logits(logits_of, rows_of(lengths, width), 1)
    return seen


@pytest.mark.parametrize("texts", [0, 1, 4, 9, 61])
@pytest.mark.parametrize("row", [1, 20, 96])
def test_texts_answer_as_each_alone_in_their_order(
    networks, monkeypatch, texts, row
):
    monkeypatch.setattr(shared_rows, "_ROW", row)
    alone, shared = networks
    lengths = np.random.default_rng(texts).integers(1, 13, texts)
    inputs = rows_of(lengths, 13)
    found = shared_rows.logits(shared, inputs, SIZE)
    assert found.shape == (texts, SIZE)
    np.testing.assert_allclose(found, alone(inputs), atol=1e-5)


def test_texts_are_distributed_in_alternating_directions(monkeypatch):
    (rows,) = packed(monkeypatch, [3, 7, 2, 6, 5, 4], 13, 9)
    np.testing.assert_array_equal(
        rows[features.POSITION_IDS],
        [
            [0, 1, 2, 3, 4, 5, 6, 0, 1],
            [0, 1, 2, 3, 4, 5, 0, 1, 2],
            [0, 1, 2, 3, 4, 0, 1, 2, 3],
        ],
    )
    np.testing.assert_array_equal(
        rows[features.NEXT_SENTENCE_POSITIONS], [[0, 7], [0, 6], [0, 5]]
    )


def test_next_to_nothing_is_padding(monkeypatch):
    lengths = np.random.default_rng(0).integers(4, 60, 32)
    (rows,) = packed(monkeypatch, lengths, 64, 96)
    assert lengths.sum() > 0.9 * rows[features.INPUT_MASK].size


def test_many_texts_are_computed_some_rows_at_a_time(monkeypatch, networks):
    monkeypatch.setattr(shared_rows, "_AT_ONCE", 40)
    lengths = np.random.default_rng(0).integers(1, 13, 30)
    seen = packed(monkeypatch, lengths, 13, 20)
    assert len(seen) > 3
    assert all(x[features.INPUT_IDS].size <= 40 for x in seen)
    inputs = rows_of(lengths, 13)
    alone, shared = networks
    found = shared_rows.logits(shared, inputs, SIZE)
    np.testing.assert_allclose(found, alone(inputs), atol=1e-5)


def test_a_text_without_tokens_has_an_answer(networks):
    found = shared_rows.logits(networks[1], rows_of([0, 4, 0], 6), SIZE)
    assert found.shape == (3, SIZE)
    assert np.isfinite(found).all()


def test_a_mask_of_large_numbers_is_one_of_ones(networks):
    inputs = rows_of([3, 1], 4)
    claimed = {**inputs, features.INPUT_MASK: inputs[features.INPUT_MASK] * 7}
    expected = shared_rows.logits(networks[1], inputs, SIZE)
    found = shared_rows.logits(networks[1], claimed, SIZE)
    np.testing.assert_array_equal(found, expected)
