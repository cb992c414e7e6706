"""What the SavedModels of the tasks share."""

from collections.abc import Callable

import keras
import tensorflow as tf

from data import features


class Hidden:
    """Keeps Keras' own functions out of what is saved.

    Args:
        value: the model.
    """

    def __init__(self, value: keras.Model):
        self.value = value


def signature(function: Callable, inputs: dict[str, tf.TensorSpec]):
    """The graph of a function of named tensors.

    Args:
        function: of keyword arguments.
        inputs: their names and shapes.
    """
    named = {
        name: tf.TensorSpec(spec.shape, spec.dtype, name)
        for name, spec in inputs.items()
    }
    return tf.function(function, autograph=False).get_concrete_function(**named)


def trim(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Cuts the columns off that are padding in every row.

    Args:
        inputs: of the encoder, int32 [B, S].
    """
    lengths = tf.reduce_sum(inputs[features.INPUT_MASK], -1)
    longest = tf.maximum(1, tf.reduce_max(lengths))
    return {name: x[:, :longest] for name, x in inputs.items()}
