"""The network: shapes, initial weights, and numbers against numpy."""

import numpy as np
import pytest

from bert.modeling import checkpoints, transformer_block
from bert.modeling.networks import build_pretraining_model
from tests.helpers import model_files, numpy_bert, small
from tests.helpers.small import A, B, H, L, S


@pytest.fixture(scope="module", params=[0.3, 1e-4])
def model(request):
    """A model whose every weight is random, biases and norms too.

    In layer norms of the smaller values an epsilon of 1e-6 would be most of
    the variance.
    """
    model = build_pretraining_model(small.config())
    rng = np.random.default_rng(3)
    for variable in model.variables:
        variable.assign(
            rng.normal(request.param, request.param, variable.shape)
        )
    if request.param < 0.3:  # the logits show the last norm
        model.get_layer("predictions").layer_norm.gamma.assign(np.ones(H))
    return model


@pytest.fixture(scope="module")
def expected(model):
    weights = model_files.values_of(model)
    return numpy_bert.forward(weights, small.batch(), L, A)


def inputs_of(model, batch):
    return {name: batch[name] for name in model.input}


def check(found, expected):
    """Compares numbers to 1e-5 of their scale, or of 1."""
    atol = 1e-5 * min(1.0, np.ptp(expected))
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def log_probs(logits):
    return numpy_bert.log_softmax(logits.numpy().astype(np.float64))


@pytest.mark.parametrize("count", [None, 3])
def test_compute_output_shape_is_the_shape_of_the_output(count):
    block = transformer_block.TransformerBlock(small.config(), 1, 0)
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
        check(ours, theirs)
    last = outputs["encoder_outputs"][-1]
    np.testing.assert_array_equal(outputs["sequence_output"], last)
    check(outputs["pooled_output"], expected["pooled_output"])


def test_heads_equal_numpy(model, expected):
    assert len(model.variables) == len(checkpoints.model_variables(model))
    outputs = model(inputs_of(model, small.batch()))
    for head in ("masked_lm", "next_sentence"):
        check(log_probs(outputs[f"{head}_logits"]), expected[head])
