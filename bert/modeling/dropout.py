"""Dropout whose masks are a function of a seed.

Keras' own layer keeps a generator that is not saved in checkpoints, and draws
the same mask on every replica. Here the training step provides a seed, made of
(run's seed, step, part of the batch), and each layer mixes in its salt:

    with dropout_seed(seed):
        outputs = model(inputs, training=True)

With Keras' other backends, Keras' own dropout is used, without `dropout_seed`.
"""

import contextlib
import threading

import keras

VERSION = "version 2"  # of the algorithm that makes masks
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
if ON_TENSORFLOW:
    import tensorflow as tf


class _Scope(threading.local):
    """The innermost `dropout_seed` of a thread.

    Attributes:
        seed: int32 [N] tensor or None.
        key: uint32 [2] tensor or None. The `seed_key` of the seed.
    """

    seed = None
    key = None


_scope = _Scope()


@contextlib.contextmanager
def dropout_seed(seed: "tf.Tensor | None"):
    """Context that passes a seed to the dropout layers called inside.

    Args:
        seed: int32 [N] or None. Seed of the dropout masks.
    """
    outer = _scope.seed, _scope.key
    has_key = seed is not None and ON_TENSORFLOW
    _scope.seed, _scope.key = seed, seed_key(seed) if has_key else None
    try:
        yield
    finally:
        _scope.seed, _scope.key = outer


def current_seed() -> "tf.Tensor | None":
    """The seed of the innermost `dropout_seed`, or None."""
    return _scope.seed


def seed_key(seed: "tf.Tensor") -> "tf.Tensor":
    """Mixes a seed, int32 [N], into a key, uint32 [2].

    The functions of `tf.random` would give other keys in a compiled program:
    XLA and TensorFlow's kernels read a negative seed differently.
    """
    key = tf.constant([0x243F6A88, 0x85A308D3], tf.uint32)  # digits of pi
    for word in tf.unstack(tf.bitcast(seed, tf.uint32)):
        key = _mix(tf.bitwise.bitwise_xor(key, word), key)
    return key


def layer_key(key: "tf.Tensor", salt: int) -> "tf.Tensor":
    """Mixes the salt of a layer into a `seed_key`: key of the layer, int32 [2].

    The salt is mixed in last, so that all layers share the other steps.
    """
    mixed = _mix(tf.bitwise.bitwise_xor(key, _uint32(salt)), key)
    return tf.bitcast(mixed, tf.int32)


def drop(x, key, rate: float):
    """Sets a fraction of x to zero and scales up the rest.

    An element's random number is a hash of its index and the key. It is a Weyl
    sequence (Steele et al. 2014, "Fast splittable pseudorandom number
    generators") through the finalizer of MurmurHash3. Half of the key is added
    before, and half is mixed in inside. The hash takes a dozen integer
    operations, so a compiled program recomputes it and stores no mask. Philox,
    the generator of `tf.random`, takes ten times as long.

    Args:
        x: float [...]. Fewer than 2**32 elements.
        key: int32 [2]. Without TensorFlow, a generator of Keras.
        rate: float. Fraction to drop, from 0 to below 1.
    """
    if not ON_TENSORFLOW:
        return keras.random.dropout(x, rate, seed=key) if rate else x
    if not (threshold := round(rate * 2**32)):
        return x

    shape = tf.shape(x)
    # Two short ranges: TensorFlow computes ranges on the host, even for a GPU.
    rows = tf.range(tf.reduce_prod(shape[:-1]))
    rows, columns, last = (
        tf.cast(part, tf.uint32)
        for part in (rows[:, None], tf.range(shape[-1]), shape[-1])
    )

    key = tf.bitcast(key, tf.uint32)
    step = _uint32(0x9E3779B9)
    # The key is added first: all other terms would be a constant as large as
    # the mask, which a compiler computes in advance.
    bits = _mix(rows * (last * step) + key[0] + columns * step, key[1])

    keep = tf.reshape(bits >= _uint32(threshold), shape)
    scale = tf.constant(1 / (1 - rate), x.dtype)
    return x * tf.where(keep, scale, tf.zeros([], x.dtype))


@keras.saving.register_keras_serializable("bert")
class Dropout(keras.layers.Layer):
    """Sets a fraction of its input to zero and scales up the rest.

    Outside of `dropout_seed`, such as in `Model.fit`, each call draws a new
    seed.

    Args:
        rate: float. Fraction to drop, from 0 to below 1.
        salt: int. Number of this layer, unique in its network.
    """

    def __init__(self, rate: float, salt: int, **kwargs):
        super().__init__(**kwargs)
        self.rate = rate
        self.salt = salt
        if not ON_TENSORFLOW:
            self.generator = keras.random.SeedGenerator(salt)
        self.build(())  # has no weights; `draw` may be called before `call`

    def call(self, x, training=False):
        """float [...] -> float [...], unchanged unless training."""
        return drop(x, *self.draw(training))

    def draw(self, training: bool) -> tuple:
        """Key and rate for `drop`; rate 0 unless training."""
        if not ON_TENSORFLOW:
            return self.generator, self.rate if training else 0.0
        if not training or self.rate == 0:
            return tf.zeros([2], tf.int32), 0.0
        key = _scope.key
        if key is None:
            key = seed_key(
                tf.random.uniform([2], maxval=tf.int32.max, dtype=tf.int32)
            )
        return layer_key(key, self.salt), self.rate

    def get_config(self):
        """The layer's arguments."""
        return {**super().get_config(), "rate": self.rate, "salt": self.salt}


def _mix(bits: "tf.Tensor", key: "tf.Tensor") -> "tf.Tensor":
    """Finalizer of MurmurHash3 on uint32, with a key mixed in."""
    bits = _fold(bits, 16) * _uint32(0x85EBCA6B)
    bits = _fold(tf.bitwise.bitwise_xor(bits, key), 13)
    return _fold(bits * _uint32(0xC2B2AE35), 16)


def _fold(bits: "tf.Tensor", by: int) -> "tf.Tensor":
    """Mixes the upper bits of uint32 into the lower ones."""
    shifted = tf.bitwise.right_shift(bits, _uint32(by))
    return tf.bitwise.bitwise_xor(bits, shifted)


def _uint32(value: int) -> "tf.Tensor":
    return tf.constant(value, tf.uint32)
