"""Elementwise operations between two matrix products, computed in float32.

`fused_ops.fused_elementwise` compiles each function as one program. Shapes: see
`layers`.
"""

import functools

import keras
from keras import ops

from bert.modeling import dropout

LAYER_NORM_EPSILON = 1e-12


def activation(name: str):
    """Activation function for a config's `hidden_act`.

    "gelu" and "gelu_new" are the tanh form (Hendrycks and Gimpel 2016,
    arXiv:1606.08415), as in the original code.
    """
    return {
        "gelu": functools.partial(ops.gelu, approximate=True),
        "gelu_new": functools.partial(ops.gelu, approximate=True),
        "gelu_erf": functools.partial(ops.gelu, approximate=False),
        "relu": ops.relu,
        "tanh": ops.tanh,
        "linear": keras.activations.linear,
    }[name]


def attention_probs(scores, bias, key, *, rate: float, scale: float):
    """float [B, A, Q, S] -> float [B, A, Q, S], with dropout."""
    dtype = scores.dtype
    bias = ops.stop_gradient(ops.cast(bias, "float32"))
    probs = ops.softmax(ops.cast(scores, "float32") * scale + bias)
    return ops.cast(dropout.drop(probs, key, rate), dtype)


def add_and_normalize(product, bias, residual, gamma, beta, key, *, rate):
    """LayerNorm(dropout(product + bias) + residual)."""
    x = ops.cast(product, "float32") + ops.cast(bias, "float32")
    x = dropout.drop(x, key, rate) + ops.cast(residual, "float32")
    return ops.cast(_layer_norm(x, gamma, beta), product.dtype)


def normalize_and_drop(x, gamma, beta, key, *, rate):
    """dropout(LayerNorm(x))."""
    normal = _layer_norm(ops.cast(x, "float32"), gamma, beta)
    return ops.cast(dropout.drop(normal, key, rate), x.dtype)


def activate(product, bias, *, name: str):
    """The activation of product + bias."""
    x = ops.cast(product, "float32") + ops.cast(bias, "float32")
    return ops.cast(activation(name)(x), product.dtype)


def _layer_norm(x, gamma, beta):
    """LayerNorm(x): float32 [..., H], float [H] twice -> float32 [..., H]."""
    gamma, beta = ops.cast(gamma, "float32"), ops.cast(beta, "float32")
    return ops.layer_normalization(
        x, gamma, beta, axis=-1, epsilon=LAYER_NORM_EPSILON
    )
