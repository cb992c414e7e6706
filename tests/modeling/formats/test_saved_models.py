"""The sizes and the activation of a network in a SavedModel."""

import functools

import pytest
import tensorflow as tf

from bert.common.errors import UserError
from bert.common.formats import tensor_files
from bert.modeling import encoder
from bert.modeling.formats import saved_models
from tests.helpers import model_files, small


def save(folder, operation):
    call = tf.function(operation, [tf.TensorSpec([None])])
    tf.saved_model.save(tf.Module(), str(folder), {"d": call})


@pytest.mark.parametrize(
    ("operation", "activation"),
    [
        (functools.partial(tf.nn.gelu, approximate=True), "gelu"),
        (tf.nn.gelu, "gelu_erf"),
        (tf.nn.relu, "relu"),
    ],
)
def test_the_activation_is_that_of_the_graph(tmp_path, operation, activation):
    save(tmp_path, operation)
    assert saved_models._activation(str(tmp_path)) == activation


def test_an_activation_that_may_be_the_poolers_is_an_error(tmp_path):
    save(tmp_path, tf.tanh)
    with pytest.raises(UserError, match="unknown activation; expected GELU"):
        saved_models._activation(str(tmp_path))


@pytest.mark.parametrize(("width", "heads"), [(32, 1), (64, 1), (128, 2)])
def test_a_square_kernel_has_heads_of_64(tmp_path, width, heads):
    """As in modules of TensorFlow 1; a small network has one head."""
    config = small.config(hidden_size=width, num_attention_heads=1)
    values = model_files.values_of(encoder.build_encoder(config))
    save(tmp_path, tf.nn.relu)
    tensor_files.write(str(tmp_path / "variables" / "variables"), values)
    found = saved_models.read_config(str(tmp_path))
    assert (found.hidden_size, found.num_attention_heads) == (width, heads)
