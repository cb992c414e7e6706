"""Layers: where dropout falls, and the epsilon of the layer norms."""

import numpy as np
import pytest
import tensorflow as tf

from bert.modeling import checkpoints, dropout, layers
from bert.modeling.encoder import build_encoder
from bert.modeling.networks import build_pretraining_model
from tests.helpers import numpy_bert, small
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
    add_norm = make.add_norm(0.5, "drop", "norm")
    parts = tf.zeros([B, S, H]), tf.ones([H]), tf.zeros([B, S, H])
    with dropout.dropout_seed(tf.constant([1, 2])):
        normed = add_norm(*parts, training=True)
    np.testing.assert_allclose(tf.math.reduce_std(normed, -1), 1.0, atol=1e-4)


def test_layer_norms_have_the_originals_epsilon():
    """Of values so small that 1e-6 would be most of the variance."""
    model = build_pretraining_model(small.config())
    named = checkpoints.model_variables(model)
    rng = np.random.default_rng(3)
    for variable in named.values():
        variable.assign(rng.normal(1e-4, 1e-4, variable.shape))
    named["cls/predictions/transform/LayerNorm/gamma"].assign(np.ones(H))
    weights = {name: variable.numpy() for name, variable in named.items()}
    expected = numpy_bert.forward(weights, small.batch(), L, A)
    encoder = model.get_layer("bert")
    outputs = encoder({name: small.batch()[name] for name in encoder.input})
    for ours, theirs in zip(
        outputs["encoder_outputs"], expected["encoder_outputs"], strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-9)
    outputs = model({name: small.batch()[name] for name in model.input})
    logits = outputs["masked_lm_logits"].numpy().astype("f8")
    np.testing.assert_allclose(
        numpy_bert.log_softmax(logits), expected["masked_lm"], atol=1e-6
    )
