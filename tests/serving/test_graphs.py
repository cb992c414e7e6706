"""Functions shared by the SavedModels of the tasks."""

import numpy as np
import pytest
import tensorflow as tf

from bert.data import features
from bert.modeling import task_models
from bert.serving import graphs
from tests.helpers import small
from tests.helpers.small import rows_of


@pytest.fixture(scope="module")
def logits_of():
    model = task_models.build_classifier(small.config(), 3)
    return lambda inputs: model(inputs, training=False)["logits"]


@pytest.mark.parametrize("rows", [0, 1, 4, 9, 61])
def test_groups_of_similar_lengths_answer_as_one_batch_in_order(
    logits_of, rows
):
    lengths = np.random.default_rng(rows).integers(1, 13, rows)
    inputs = rows_of(lengths, 13)
    found = graphs.by_length(logits_of, inputs, [3])
    assert found.shape == (rows, 3)
    np.testing.assert_allclose(found, logits_of(inputs), atol=1e-5)


def test_a_sequence_is_not_padded_to_a_much_longer_one():
    seen = []

    def logits_of(inputs):
        seen.append(tuple(inputs[features.INPUT_IDS].shape))
        return tf.zeros([len(inputs[features.INPUT_IDS]), 1])

    graphs.by_length(logits_of, rows_of([12] + 9 * [2], 13), [1])
    assert seen == [(4, 2), (4, 2), (2, 12)]


def test_logits_of_each_token_are_padded_with_0():
    model = task_models.build_token_classifier(small.config(), 2)

    def logits_of(inputs):
        return model(inputs, training=False)["logits"]

    inputs = rows_of([12, 2, 3, 12, 1, 2, 12, 12, 2], 13)
    found = graphs.by_length(logits_of, inputs, [13, 2])
    real = np.array(inputs[features.INPUT_MASK])[..., np.newaxis]
    np.testing.assert_allclose(
        found * real, logits_of(inputs) * real, atol=1e-5
    )
    assert not np.any(found[1, 12:])


def test_a_large_batch_has_eight_groups():
    seen = []

    def logits_of(inputs):
        seen.append(len(inputs[features.INPUT_IDS]))
        return tf.zeros([seen[-1], 1])

    graphs.by_length(logits_of, rows_of(77 * [3], 3), [1])
    assert seen == 7 * [10] + [7]


def test_a_sequence_without_tokens_has_an_answer(logits_of):
    found = graphs.by_length(logits_of, rows_of([0, 4], 6), [3])
    assert np.isfinite(found).all()


def test_common_padding_is_cut_and_a_masked_position_is_not():
    cut = graphs.trim(rows_of([3, 5], 9))
    assert {tuple(x.shape) for x in cut.values()} == {(2, 5)}


def test_a_mask_is_ones_whatever_its_values_are(logits_of):
    """Its values are no lengths: a client could claim any."""
    inputs = rows_of([1, 3], 4)
    mask = inputs[features.INPUT_MASK] * 8000
    claimed = {**inputs, features.INPUT_MASK: mask}
    assert graphs.lengths(claimed).numpy().tolist() == [1, 3]
