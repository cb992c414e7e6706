"""An encoder layer: attention and feed-forward, each with a residual.

`TransformerBlock.call` is the layer from top to bottom. The products of
matrices are single calls; the operations between two of them are one function,
which `fused_ops.elementwise` compiles in a fused step.

Shapes: B batch, S sequence, H hidden, A heads, D = H / A, I intermediate,
Q query positions.

Nested layers define `build` and `compute_output_shape`: otherwise Keras would
trace each of them twice, which is most of the time of building a network.
"""

import math

import keras
from keras import ops

from bert.modeling import dropout, fused_ops, layers
from bert.modeling.config import BertConfig


@fused_ops.elementwise
def attention_probs(scores, bias, key, *, rate: float, scale: float):
    """float [B, A, Q, S] -> float [B, A, Q, S], with dropout."""
    dtype = scores.dtype
    bias = ops.stop_gradient(ops.cast(bias, "float32"))
    probs = ops.softmax(ops.cast(scores, "float32") * scale + bias)
    return ops.cast(dropout.drop(probs, key, rate), dtype)


@fused_ops.elementwise
def add_and_normalize(
    product, bias, residual, gamma, beta, key, *, rate: float
):
    """LayerNorm(dropout(product + bias) + residual), computed in float32."""
    x = ops.cast(product, "float32") + ops.cast(bias, "float32")
    x = dropout.drop(x, key, rate) + ops.cast(residual, "float32")
    return ops.cast(layers.layer_norm(x, gamma, beta), product.dtype)


@fused_ops.elementwise
def activate(product, bias, *, name: str):
    """The activation of product + bias, computed in float32."""
    x = ops.cast(product, "float32") + ops.cast(bias, "float32")
    return ops.cast(layers.activation(name)(x), product.dtype)


class Projection(keras.layers.Dense):
    """x W and b of a dense layer; the next function adds them."""

    def call(self, x):
        """float [..., inputs] -> float [..., units] and [units]."""
        return ops.matmul(x, self.kernel), ops.convert_to_tensor(self.bias)

    def quantize(self, mode=None, type_check=True, config=None):
        """As in `Dense`, which does not accept subclasses."""
        super().quantize(mode, type_check=False, config=config)

    def quantized_call(self, x):
        """As `call`. Keras has already added b, so 0 is returned instead."""
        product = super().quantized_call(x)
        return product, ops.zeros((self.units,), product.dtype)


class SelfAttention(keras.layers.Layer):
    """Scaled dot-product attention with A heads."""

    def __init__(self, config: BertConfig, seed: int, scope: str, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        make = layers.LayerFactory(config, seed, scope, self.dtype_policy)
        self.query = make.dense(config.hidden_size, "query")
        self.key = make.dense(config.hidden_size, "key")
        self.value = make.dense(config.hidden_size, "value")
        self.dropout = make.dropout(
            config.attention_probs_dropout_prob, "probs_dropout"
        )

    def build(self, x_shape):
        """Creates the weights of queries, keys and values."""
        for dense in (self.query, self.key, self.value):
            dense.build(x_shape)

    def call(self, x, bias, queries=None, training=False):
        """Attends from some positions to all positions.

        Args:
            x: float [B, S, H].
            bias: float32 [B, 1, 1 or Q, S]. Attention bias (additive mask).
            queries: float [B, Q, H] or None. Inputs at the query positions.
                Default: None, x.
            training: bool. Whether dropout is active. Default: False.

        Returns:
            float [B, Q, H].
        """
        queries = x if queries is None else queries

        heads = self.config.num_attention_heads
        q = split_heads(self.query(queries), queries, heads)  # [B, A, Q, D]
        k = split_heads(self.key(x), x, heads)  # [B, A, S, D]
        v = split_heads(self.value(x), x, heads)  # [B, A, S, D]

        # Drawn here, as the backward pass may run `attend` again.
        key, rate = self.dropout.draw(training)
        scale = 1.0 / math.sqrt(q.shape[-1])

        def attend(q, k, v, bias, key):
            keys = ops.transpose(k, (0, 1, 3, 2))
            scores = ops.matmul(q, keys)  # [B, A, Q, S]
            probs = attention_probs(scores, bias, key, rate=rate, scale=scale)
            return ops.matmul(probs, v)

        context = fused_ops.recompute(attend, q, k, v, bias, key)
        context = ops.transpose(context, (0, 2, 1, 3))
        return ops.reshape(context, ops.shape(queries))


class AddNorm(keras.layers.Layer):
    """LayerNorm(dropout(product + bias) + residual).

    Args:
        drop: Dropout. Dropout layer.
    """

    def __init__(self, drop: dropout.Dropout, **kwargs):
        # Gamma and beta stay float32 in mixed precision.
        super().__init__(autocast=False, **kwargs)
        self.dropout = drop

    def build(self, product_shape):
        """Creates gamma and beta, [H] each."""
        shape = product_shape[-1:]
        self.gamma = self.add_weight(shape, initializer="ones", name="gamma")
        self.beta = self.add_weight(shape, initializer="zeros", name="beta")

    def call(self, product, bias, residual, training=False):
        """float [B, Q, H], [H] and [B, Q, H] -> float [B, Q, H]."""
        key, rate = self.dropout.draw(training)
        return add_and_normalize(
            product,
            bias,
            residual,
            ops.convert_to_tensor(self.gamma),
            ops.convert_to_tensor(self.beta),
            key,
            rate=rate,
        )


@keras.saving.register_keras_serializable("bert")
class TransformerBlock(keras.layers.Layer):
    """Attention and feed-forward, each with residual and layer norm."""

    def __init__(
        self,
        config: BertConfig | dict,
        seed: int,
        index: int,
        name: str | None = None,
        **kwargs,
    ):
        scope = f"layer_{index}"
        super().__init__(name=name or scope, **kwargs)
        self.config = config = layers.as_config(config)
        self.seed, self.index = seed, index
        make = layers.LayerFactory(config, seed, scope, self.dtype_policy)
        width, rate = config.hidden_size, config.hidden_dropout_prob

        self.attention = SelfAttention(
            config, seed, scope, name="self", dtype=self.dtype_policy
        )
        self.attention_output = make.dense(
            width, "attention_output", Projection
        )
        self.attention_layer_norm = AddNorm(
            make.dropout(rate, "attention_dropout"),
            name="attention_LayerNorm",
            dtype=make.dtype,
        )

        self.intermediate = make.dense(
            config.intermediate_size, "intermediate", Projection
        )
        self.output_dense = make.dense(width, "output", Projection)
        self.output_layer_norm = AddNorm(
            make.dropout(rate, "output_dropout"),
            name="output_LayerNorm",
            dtype=make.dtype,
        )

    def get_config(self):
        """The layer's arguments."""
        return {
            **layers.serialize_config(self, super().get_config()),
            "index": self.index,
        }

    def build(self, x_shape):
        """Creates the weights of all parts."""
        self.attention.build(x_shape)
        self.attention_output.build(x_shape)
        self.attention_layer_norm.build(x_shape)
        self.intermediate.build(x_shape)
        self.output_dense.build((*x_shape[:-1], self.intermediate.units))
        self.output_layer_norm.build(x_shape)

    def compute_output_shape(self, x_shape, bias_shape, positions_shape=None):
        """(B, S, H) -> (B, Q, H)."""
        batch, length, width = x_shape
        return (batch, positions_shape[1] if positions_shape else length, width)

    def call(self, x, bias, positions=None, training=False):
        """Computes the layer at all or some positions.

        Args:
            x: float [B, S, H].
            bias: float32 [B, 1, 1 or S, S]. Attention bias (additive mask).
            positions: int32 [B, Q] or None. Positions of the output. Default:
                None, all positions.
            training: bool. Whether dropout is active. Default: False.

        Returns:
            float [B, Q, H].
        """

        def layer(x):
            return self._layer(x, bias, positions, training)

        return fused_ops.remat_layer(layer, x) if training else layer(x)

    def _layer(self, x, bias, positions, training):
        queries = x

        # Keys and values are still computed at all positions.
        if positions is not None:
            queries = layers.gather_positions(x, positions)
            if bias.shape[2] != 1:  # one mask for each position
                bias = layers.gather_positions(bias[:, 0], positions)[:, None]

        attended = self.attention(x, bias, queries, training=training)
        product, b = self.attention_output(attended)
        x = self.attention_layer_norm(product, b, queries, training=training)

        # The feed-forward part: [B, Q, H] to [B, Q, I], and back.
        product, b = self.intermediate(x)
        hidden = activate(product, b, name=self.config.hidden_act)
        product, b = self.output_dense(hidden)
        return self.output_layer_norm(product, b, x, training=training)


def split_heads(x, inputs, heads: int):
    """[B, S, H] -> [B, A, S, D]; `inputs`, [B, S, H], were projected to x."""
    # Shapes are read from the inputs: tf2onnx confuses them after a product.
    batch, length, width = ops.shape(inputs)
    x = ops.reshape(x, (batch, length, heads, width // heads))
    return ops.transpose(x, (0, 2, 1, 3))
