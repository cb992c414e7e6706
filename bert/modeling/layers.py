"""Layers below and beside the blocks of the encoder, and their parts.

    ids -> Embeddings -> TransformerBlock x L -> dense pooler
                         (transformer_block)

Shapes: B batch, S sequence, H hidden, Q positions.
"""

import dataclasses
import functools
import zlib

import keras
from keras import ops

from bert.modeling import dropout, fused_ops
from bert.modeling.config import BertConfig

MASKED_SCORE = -10000.0  # added to the scores of padded keys
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


def layer_norm(x, gamma, beta):
    """LayerNorm(x): float32 [..., H], float [H] twice -> float32 [..., H]."""
    gamma, beta = ops.cast(gamma, "float32"), ops.cast(beta, "float32")
    return ops.layer_normalization(
        x, gamma, beta, axis=-1, epsilon=LAYER_NORM_EPSILON
    )


@fused_ops.elementwise
def normalize_and_drop(x, gamma, beta, key, *, rate: float):
    """dropout(LayerNorm(x)), computed in float32."""
    normal = layer_norm(ops.cast(x, "float32"), gamma, beta)
    return ops.cast(dropout.drop(normal, key, rate), x.dtype)


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
        policies = keras.dtype_policies.DTypePolicyMap
        self._policies = (
            dtype if isinstance(dtype, policies) else policies(dtype)
        )
        self.dtype = self._policies.default_policy

    def initializer(self, name: str) -> keras.initializers.Initializer:
        """Truncated normal, as in the original."""
        # Seeded by names, so that a new part does not change other weights.
        seed = zlib.crc32(f"{self._seed}/{self._scope}/{name}".encode())
        return keras.initializers.TruncatedNormal(
            stddev=self._config.initializer_range, seed=seed
        )

    def dense(
        self, units: int, name: str, layer=keras.layers.Dense, **kwargs
    ) -> keras.layers.Dense:
        """x W + b, W of [inputs, units]."""
        return layer(
            units,
            kernel_initializer=self.initializer(name),
            name=name,
            dtype=self._policies[name],
            **kwargs,
        )

    def dropout(self, rate: float, name: str) -> dropout.Dropout:
        """A dropout layer with its own salt."""
        # 31 bits, so that the salt is also an int32.
        salt = zlib.crc32(f"{self._scope}/{name}".encode()) & 0x7FFFFFFF
        return dropout.Dropout(rate, salt, name=name, dtype=self.dtype)

    def layer_norm(self) -> keras.layers.LayerNormalization:
        """Layer normalization with the original's epsilon."""
        return keras.layers.LayerNormalization(
            epsilon=LAYER_NORM_EPSILON,
            name="LayerNorm",
            dtype=self.dtype,
        )


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
        return normalize_and_drop(
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
