"""Layers: where dropout falls."""

import numpy as np
import pytest
import tensorflow as tf

from bert.modeling import dropout, layers, transformer_block
from bert.modeling.encoder import build_encoder
from tests.helpers import small
from tests.helpers.small import A, B, H, L, S

HIDDEN, ATTENTION = 0.2, 0.3


@pytest.fixture
def drops(monkeypatch):
    """Calls of `dropout.drop` in one pass of training: shape, rate, key."""
    calls, drop = [], dropout.drop

    def recorded(x, key, rate):
        calls.append((tuple(x.shape), rate, tuple(key.numpy().tolist())))
        return drop(x, key, rate)

    monkeypatch.setattr(dropout, "drop", recorded)
    encoder = build_encoder(
        small.config(
            hidden_dropout_prob=HIDDEN, attention_probs_dropout_prob=ATTENTION
        )
    )
    inputs = {name: small.batch()[name] for name in encoder.input}
    calls.clear()  # those of building it
    with dropout.dropout_seed(tf.constant([1, 2])):
        encoder(inputs, training=True)
    return calls


def test_dropout_falls_where_the_original_has_it(drops):
    """On the embeddings, attention weights and both outputs of a layer."""
    outputs = ((B, S, H), HIDDEN)
    layer = [((B, A, S, S), ATTENTION), outputs, outputs]
    found = [(shape, rate) for shape, rate, _ in drops]
    assert found == [outputs] + layer * L


def test_each_dropout_has_a_mask_of_its_own(drops):
    keys = {key for _, _, key in drops}
    assert len(keys) == 1 + 3 * L


def test_dropout_falls_on_the_sum_of_product_and_bias():
    """So a row whose product is zero is no constant, and has a norm."""
    make = layers.LayerFactory(small.config(), 3, "scope")
    add_norm = transformer_block.AddNorm(make.dropout(0.5, "drop"))
    parts = tf.zeros([B, S, H]), tf.ones([H]), tf.zeros([B, S, H])
    with dropout.dropout_seed(tf.constant([1, 2])):
        normed = add_norm(*parts, training=True)
    np.testing.assert_allclose(tf.math.reduce_std(normed, -1), 1.0, atol=1e-4)
