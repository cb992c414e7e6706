"""The network: shapes, initial weights, and numbers against numpy."""

import numpy as np
import pytest

from bert.modeling import checkpoints, elementwise, layers
from bert.modeling.networks import build_pretraining_model
from tests.helpers import numpy_bert, small
from tests.helpers.small import A, B, H, L, S


@pytest.fixture(scope="module")
def model():
    """A model whose every weight is random, biases and norms too."""
    model = build_pretraining_model(small.config())
    rng = np.random.default_rng(3)
    for variable in model.variables:
        variable.assign(rng.normal(0.3, 0.3, variable.shape))
    return model


@pytest.fixture(scope="module")
def expected(model):
    named = checkpoints.model_variables(model)
    weights = {name: variable.numpy() for name, variable in named.items()}
    return numpy_bert.forward(weights, small.batch(), L, A)


def inputs_of(model, batch):
    return {name: batch[name] for name in model.input}


def log_probs(logits):
    return numpy_bert.log_softmax(logits.numpy().astype(np.float64))


@pytest.mark.parametrize("count", [None, 3])
def test_compute_output_shape_is_the_shape_of_the_output(count):
    block = layers.TransformerBlock(small.config(), 1, 0)
    x, bias = np.zeros((B, S, H), "float32"), np.zeros((B, 1, 1, S), "float32")
    positions = None if count is None else np.zeros((B, count), "int32")
    shape = block.compute_output_shape(
        x.shape, bias.shape, None if count is None else positions.shape
    )
    assert block(x, bias, positions).shape == shape == (B, count or S, H)


def test_every_layer_equals_numpy(model, expected):
    encoder = model.get_layer("bert")
    outputs = encoder(inputs_of(encoder, small.batch()))
    for ours, theirs in zip(
        outputs["encoder_outputs"], expected["encoder_outputs"], strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    last = outputs["encoder_outputs"][-1]
    np.testing.assert_array_equal(outputs["sequence_output"], last)
    np.testing.assert_allclose(
        outputs["pooled_output"], expected["pooled_output"], atol=1e-5
    )


def test_heads_equal_numpy(model, expected):
    assert len(model.variables) == len(checkpoints.model_variables(model))
    outputs = model(inputs_of(model, small.batch()))
    for head in ("masked_lm", "next_sentence"):
        np.testing.assert_allclose(
            log_probs(outputs[f"{head}_logits"]), expected[head], atol=1e-5
        )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gelu", [-0.158808, 0.0, 0.841192]),
        ("gelu_new", [-0.158808, 0.0, 0.841192]),
        ("gelu_erf", [-0.158655, 0.0, 0.841345]),
        ("relu", [0.0, 0.0, 1.0]),
        ("tanh", [-0.761594, 0.0, 0.761594]),
    ],
)
def test_activations(name, expected):
    x = np.array([-1.0, 0.0, 1.0], np.float32)
    np.testing.assert_allclose(
        elementwise.activation(name)(x), expected, atol=1e-5
    )
