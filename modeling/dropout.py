"""Dropout whose masks are a function of a seed: TensorFlow only.

Keras' own layer keeps a generator that no checkpoint holds and that draws the
same mask on every replica. Here the training step hands over a seed, made of
(run's seed, step, micro-batch, replica), and each layer mixes in its number:

    with dropout_seed(seed):
        outputs = model(inputs, training=True)
"""

import contextlib
import threading

import keras
import tensorflow as tf

_scope = threading.local()


@contextlib.contextmanager
def dropout_seed(seed: tf.Tensor):
    """Hands a seed to the dropout layers that are called inside.

    Args:
        seed: int32 [2].
    """
    outer = getattr(_scope, "seed", None)
    _scope.seed = seed
    try:
        yield
    finally:
        _scope.seed = outer


class Dropout(keras.layers.Layer):
    """Sets a share of its input to zero and scales up the rest.

    Outside of `dropout_seed`, as under `Model.fit`, each call draws a fresh
    seed.

    Args:
        rate: the share, 0 to below 1; it is rounded to 1 / 65,536.
        salt: number of this layer in its network.
    """

    def __init__(self, rate: float, salt: int, **kwargs):
        super().__init__(**kwargs)
        self.rate = rate
        self.salt = salt

    def call(self, x, training=False):
        """float [...] -> float [...], unchanged unless training."""
        threshold = round(self.rate * 65536)
        if not training or threshold == 0:
            return x
        seed = getattr(_scope, "seed", None)
        if seed is None:
            seed = tf.random.uniform([2], maxval=tf.int32.max, dtype=tf.int32)
        seed = tf.random.experimental.stateless_fold_in(seed, self.salt)
        # Two 16-bit decisions a draw: drawing is the cost of dropout on CPU.
        shape = tf.shape(x)
        size = tf.reduce_prod(shape)
        bits = tf.random.stateless_uniform(
            [(size + 1) // 2], seed, minval=None, maxval=None, dtype=tf.int32
        )
        halves = tf.reshape(tf.bitcast(bits, tf.uint16), [-1])[:size]
        keep = tf.cast(tf.cast(halves, tf.int32) >= threshold, x.dtype)
        scale = tf.cast(65536 / (65536 - threshold), x.dtype)
        return x * tf.reshape(keep * scale, shape)

    def get_config(self):
        """The layer's arguments."""
        return {**super().get_config(), "rate": self.rate, "salt": self.salt}
