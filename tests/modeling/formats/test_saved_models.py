"""The activation of a network in the graph of a SavedModel."""

import functools

import pytest
import tensorflow as tf

from bert.common.errors import UserError
from bert.modeling.formats import saved_models


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
