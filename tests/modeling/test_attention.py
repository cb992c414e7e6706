"""Attention probabilities are those of the network."""

import numpy as np
import pytest

from modeling import attention, layers
from modeling.encoder import build_encoder
from tests.helpers import small
from tests.helpers.small import A, B, L, S


@pytest.mark.parametrize("layer", range(L))
def test_the_probabilities_weigh_the_values_of_a_layer(layer):
    encoder = build_encoder(small.config(initializer_range=1.0))
    inputs = {name: small.batch()[name] for name in encoder.input}
    probs = np.asarray(attention.probabilities(encoder, inputs, layer))
    assert probs.shape == (B, A, S, S)
    np.testing.assert_allclose(probs.sum(-1), 1, atol=1e-5)
    padding = np.broadcast_to(
        inputs["input_mask"][:, None, None] == 0, probs.shape
    )
    assert padding.any() and probs[padding].max() < 1e-6

    outputs = encoder(inputs)
    x = [outputs["embedding_output"], *outputs["encoder_outputs"]][layer]
    block = encoder.get_layer(f"layer_{layer}").attention
    bias = encoder.get_layer("attention_mask")(inputs["input_mask"])
    values = np.asarray(layers.split_heads(block.value(x), x, A))
    context = np.transpose(probs @ values, (0, 2, 1, 3))
    np.testing.assert_allclose(
        context.reshape(x.shape), np.asarray(block(x, bias)), atol=1e-5
    )
