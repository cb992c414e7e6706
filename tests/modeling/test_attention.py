"""Attention probabilities, and attention that keeps none of them."""

import numpy as np
import pytest
import tensorflow as tf

from bert.modeling import fused_ops, layers, precision, transformer_block
from bert.modeling.encoder import attention_scores, build_encoder
from tests.helpers import small
from tests.helpers.small import A, B, L, S


@pytest.mark.parametrize("layer", range(L))
def test_the_probabilities_weigh_the_values_of_a_layer(layer):
    encoder = build_encoder(small.config(initializer_range=1.0))
    inputs = {name: small.batch()[name] for name in encoder.input}
    probs = np.asarray(attention_scores(encoder, inputs, layer))
    assert probs.shape == (B, A, S, S)
    np.testing.assert_allclose(probs.sum(-1), 1, atol=1e-5)
    padding = np.broadcast_to(
        inputs["input_mask"][:, None, None] == 0, probs.shape
    )
    assert padding.any() and probs[padding].max() < 1e-6

    outputs = encoder(inputs)
    x = [outputs["embedding_output"], *outputs["encoder_outputs"]][layer]
    block = encoder.get_layer(f"layer_{layer}").attention
    bias = encoder.get_layer("attention_bias")(inputs["input_mask"])
    values = np.asarray(transformer_block.split_heads(block.value(x), x, A))
    context = np.transpose(probs @ values, (0, 2, 1, 3))
    np.testing.assert_allclose(
        context.reshape(x.shape), np.asarray(block(x, bias)), atol=1e-5
    )


def attend(options, kind, packed, xla, stage=None):
    """Output and gradients of a layer with dropout, or its program."""
    config = small.config(attention_probs_dropout_prob=0.3)
    with precision.computing_in(kind):
        layer = transformer_block.SelfAttention(config, 7, "layer_0")
    rng = np.random.default_rng(3)
    x = tf.cast(rng.normal(size=(B, S, small.H)), layer.compute_dtype)
    layer.build(x.shape)
    ids = np.repeat([[1, 1, 1, 2, 2, 2, 2, 3, 3, 0, 0]], B, 0)
    bias = layers.AttentionBias()(ids, ids if packed else None)

    @tf.function(jit_compile=xla)
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            with fused_ops.inside_step(tf.constant([5, 7]), options):
                y = layer(x, bias, training=True)
            loss = tf.reduce_sum(tf.square(tf.cast(y, tf.float32)))
        return [y, *tape.gradient(loss, [x, *layer.trainable_variables])]

    if stage:
        return run.experimental_get_compiler_ir(x)(stage=stage)
    return [np.asarray(tf.cast(value, tf.float32)) for value in run(x)]


@pytest.mark.parametrize(
    ("kind", "off", "packed"),
    [("float32", 1e-5, False), ("bfloat16", 0.03, True)],
)
def test_compiled_attention_equals_the_plain_one(kind, off, packed):
    """With the same dropout, and gradients; neither keeps probabilities."""
    compiled = fused_ops.StepOptions(compiled=True)
    ours = attend(compiled, kind, packed, True)
    plain = attend(fused_ops.StepOptions(), kind, packed, False)
    for one, other in zip(ours, plain, strict=True):
        scale = max(1.0, abs(other).max())
        np.testing.assert_allclose(one, other, atol=off * scale)


def test_compiled_attention_computes_its_probabilities_again():
    """From values behind a barrier: XLA would merge equal computations."""
    compiled = fused_ops.StepOptions(compiled=True)
    text = attend(compiled, "float32", True, True, "hlo")
    assert text.count(" opt-barrier(") == 1
    assert text.count(" exponential(") == 2
    plain = attend(fused_ops.StepOptions(), "float32", True, True, "hlo")
    assert plain.count(" exponential(") == 1
