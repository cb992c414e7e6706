"""Layers of the encoder (Devlin et al. 2018, arXiv:1810.04805).

    ids -> Embeddings -> TransformerBlock x L -> Pooler

Shapes: B batch, S sequence, H hidden, A heads, D = H / A, I intermediate,
Q query positions.

Nested layers define `build` and `compute_output_shape`: otherwise Keras would
trace each of them twice, which is most of the time of building a network.
"""

import dataclasses
import math
import zlib

import keras
from keras import ops

from bert.modeling import dropout, elementwise, fused_ops
from bert.modeling.config import BertConfig

MASKED_SCORE = -10000.0  # added to the scores of padded keys


class LayerFactory:
    """Makes the parts of one layer, each with its own initializer seed.

    Args:
        config: BertConfig. Sizes of the network.
        seed: int. Seed of the initial weights.
        scope: str. Name of the layer in its network. The seed of a part depends
            on it and on the part's name.
        dtype: dtype policy or None. Policy of the parts. A map also has the
            policies of quantized dense layers, by name. Default: None, Keras'
            global policy.
    """

    def __init__(self, config: BertConfig, seed: int, scope: str, dtype=None):
        self._config, self._seed, self._scope = config, seed, scope
        kind = keras.dtype_policies.DTypePolicyMap
        self._policies = dtype if isinstance(dtype, kind) else kind(dtype)
        self._dtype = self._policies.default_policy

    def initializer(self, name: str) -> keras.initializers.Initializer:
        """Truncated normal, as in the original."""
        # Seeded by names, so that a new part does not change other weights.
        seed = zlib.crc32(f"{self._seed}/{self._scope}/{name}".encode())
        return keras.initializers.TruncatedNormal(
            stddev=self._config.initializer_range, seed=seed
        )

    def dense(
        self, units: int, name: str, kind=keras.layers.Dense, **kwargs
    ) -> keras.layers.Dense:
        """x W + b, W of [inputs, units]."""
        return kind(
            units,
            kernel_initializer=self.initializer(name),
            name=name,
            dtype=self._policies[name],
            **kwargs,
        )

    def projection(self, units: int, name: str) -> "Projection":
        """x W and b, which the next layer adds."""
        return self.dense(units, name, Projection)

    def dropout(self, rate: float, name: str) -> dropout.Dropout:
        """A dropout layer with its own salt."""
        # 31 bits, so that the salt is also an int32.
        salt = zlib.crc32(f"{self._scope}/{name}".encode()) & 0x7FFFFFFF
        return dropout.Dropout(rate, salt, name=name, dtype=self._dtype)

    def layer_norm(self) -> keras.layers.LayerNormalization:
        """Layer normalization with the original's epsilon."""
        return keras.layers.LayerNormalization(
            epsilon=elementwise.LAYER_NORM_EPSILON,
            name="LayerNorm",
            dtype=self._dtype,
        )

    def add_norm(self, rate: float, drop: str, name: str) -> "AddNorm":
        """Dropout, residual and layer normalization."""
        return AddNorm(self.dropout(rate, drop), name=name, dtype=self._dtype)


def serialize_config(
    layer: keras.layers.Layer, inherited: dict, policy=None
) -> dict:
    """Arguments of a layer with a config and a seed, as JSON values.

    Args:
        layer: keras.layers.Layer. Has the attributes `config` and `seed`.
        inherited: dict. Arguments of Keras' base layer.
        policy: dtype policy or None. Policy of the parts that are not
            quantized. Default: None, the layer's policy.
    """
    policy = policy or layer.dtype_policy
    policy = getattr(policy, "default_policy", policy)

    # Quantized layers have their own policies.
    quantized = {
        part.name: part.dtype_policy
        for part in layer._flatten_layers(include_self=False)
        if part.dtype_policy.quantization_mode
    }
    if quantized:
        policy = keras.dtype_policies.DTypePolicyMap(policy, quantized)

    return {
        **inherited,
        "dtype": keras.dtype_policies.serialize(policy),
        "config": dataclasses.asdict(layer.config),
        "seed": layer.seed,
    }


def as_config(config: BertConfig | dict) -> BertConfig:
    """Returns a layer's config, given as such or as a saved dict."""
    return BertConfig(**config) if isinstance(config, dict) else config


@keras.saving.register_keras_serializable("bert")
class Embeddings(keras.layers.Layer):
    """Sum of word, segment and position embeddings, normalized."""

    def __init__(
        self,
        config: BertConfig | dict,
        seed: int,
        name: str = "embeddings",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        self.config = config = as_config(config)
        self.seed = seed
        make = LayerFactory(config, seed, "embeddings", self.dtype_policy)
        width = config.hidden_size

        def table(name: str, rows: int, **kwargs):
            return self.add_weight(
                shape=(rows, width),
                initializer=make.initializer(name),
                name=name,
                **kwargs,
            )

        # Not autocast: the masked LM needs the table in float32.
        self.word_embeddings = table(
            "word_embeddings", config.vocab_size, autocast=False
        )
        self.token_type_embeddings = table(
            "token_type_embeddings", config.type_vocab_size
        )
        self.position_embeddings = table(
            "position_embeddings", config.max_position_embeddings
        )
        self.layer_norm = make.layer_norm()
        self.dropout = make.dropout(config.hidden_dropout_prob, "dropout")

    def get_config(self):
        """The layer's arguments."""
        return serialize_config(self, super().get_config())

    def build(self, input_ids_shape):
        """Creates the layer norm's weights."""
        self.layer_norm.build((*input_ids_shape, self.config.hidden_size))

    def compute_output_shape(self, input_ids_shape):
        """(B, S) -> (B, S, H)."""
        return (*input_ids_shape, self.config.hidden_size)

    def call(self, input_ids, segment_ids, position_ids=None, training=False):
        """Three times int32 [B, S] -> float [B, S, H].

        Without `position_ids` the positions are 0 to S - 1.
        """
        # A matrix product gives a dense gradient for the small table.
        segments = ops.one_hot(
            segment_ids, self.config.type_vocab_size, dtype=self.compute_dtype
        )

        x = fused_ops.embedding_lookup(
            self.word_embeddings, input_ids, self.compute_dtype
        )  # [B, S, H]
        x = x + ops.matmul(segments, self.token_type_embeddings)

        # Packed rows have individual positions; others share 0 to S - 1.
        if position_ids is None:
            length = ops.shape(input_ids)[1]
            x = fused_ops.broadcast_add(x, self.position_embeddings[:length])
        else:
            x = x + fused_ops.embedding_lookup(
                self.position_embeddings, position_ids
            )

        key, rate = self.dropout.draw(training)
        return fused_ops.fused_elementwise(
            elementwise.normalize_and_drop,
            x,
            ops.convert_to_tensor(self.layer_norm.gamma),
            ops.convert_to_tensor(self.layer_norm.beta),
            key,
            rate=rate,
        )


@keras.saving.register_keras_serializable("bert")
class AttentionBias(keras.layers.Layer):
    """Attention bias that masks padding, or other sequences of a packed row."""

    def call(self, input_mask, sequence_ids=None):
        """Makes the bias.

        Args:
            input_mask: int32 [B, S]. 1 = token.
            sequence_ids: int32 [B, S] or None. 0 = padding. Default: None, one
                sequence per row.

        Returns:
            float32 [B, 1, 1, S]; with `sequence_ids`, [B, 1, S, S].
        """
        masked = 1.0 - ops.cast(input_mask, "float32")[:, None]

        # In a packed row, tokens only attend to their own sequence.
        if sequence_ids is not None:
            other = sequence_ids[:, :, None] != sequence_ids[:, None]
            masked = ops.cast(other, "float32")
        return masked[:, None] * MASKED_SCORE


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
        make = LayerFactory(config, seed, scope, self.dtype_policy)
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
            scores = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2)))
            probs = fused_ops.fused_elementwise(
                elementwise.attention_probs,
                scores,
                bias,
                key,
                rate=rate,
                scale=scale,
            )  # [B, A, Q, S]
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
        return fused_ops.fused_elementwise(
            elementwise.add_and_normalize,
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
        self.config = config = as_config(config)
        self.seed, self.index = seed, index
        make = LayerFactory(config, seed, scope, self.dtype_policy)
        width, rate = config.hidden_size, config.hidden_dropout_prob

        self.attention = SelfAttention(
            config, seed, scope, name="self", dtype=self.dtype_policy
        )
        self.attention_output = make.projection(width, "attention_output")
        self.attention_layer_norm = make.add_norm(
            rate, "attention_dropout", "attention_LayerNorm"
        )

        self.intermediate = make.projection(
            config.intermediate_size, "intermediate"
        )
        self.output_dense = make.projection(width, "output")
        self.output_layer_norm = make.add_norm(
            rate, "output_dropout", "output_LayerNorm"
        )

    def get_config(self):
        """The layer's arguments."""
        return {
            **serialize_config(self, super().get_config()),
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
            queries = gather_positions(x, positions)
            if bias.shape[2] != 1:  # one mask for each position
                bias = gather_positions(bias[:, 0], positions)[:, None]

        attended = self.attention(x, bias, queries, training=training)
        x = self.attention_layer_norm(
            *self.attention_output(attended), queries, training=training
        )

        # The feed-forward part: [B, Q, H] to [B, Q, I], and back.
        hidden = fused_ops.fused_elementwise(
            elementwise.activate,
            *self.intermediate(x),
            name=self.config.hidden_act,
        )
        return self.output_layer_norm(
            *self.output_dense(hidden), x, training=training
        )


def split_heads(x, inputs, heads: int):
    """[B, S, H] -> [B, A, S, D]; `inputs`, [B, S, H], were projected to x."""
    # Shapes are read from the inputs: tf2onnx confuses them after a product.
    batch, length, width = ops.shape(inputs)
    x = ops.reshape(x, (batch, length, heads, width // heads))
    return ops.transpose(x, (0, 2, 1, 3))


@keras.saving.register_keras_serializable("bert")
class GatherPositions(keras.layers.Layer):
    """Gathers positions: float [B, S, H], int32 [B, K] -> float [B, K, H]."""

    def call(self, x, positions):
        """See the class."""
        return gather_positions(x, positions)


def gather_positions(x, positions):
    """Gathers positions: float [B, S, N], int32 [B, Q] -> float [B, Q, N]."""
    batch, length, width = ops.shape(x)

    # One table of B * S rows: position p of sequence b is row b * S + p.
    first = ops.arange(batch, dtype="int32")[:, None] * length
    return fused_ops.embedding_lookup(
        ops.reshape(x, (-1, width)), positions + first
    )
