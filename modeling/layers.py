"""Layers of the encoder (Devlin et al. 2018, arXiv:1810.04805).

    ids -> Embeddings -> TransformerBlock x L -> Pooler

Shapes: B batch, S sequence, H hidden, A heads, D = H / A, I intermediate.
"""

import math
import zlib

import keras
from keras import ops

from modeling.config import BertConfig
from modeling.dropout import Dropout

LAYER_NORM_EPSILON = 1e-12
MASKED_SCORE = -10000.0  # added to the scores of padded keys


def activation(name: str):
    """The function that a config's `hidden_act` names.

    "gelu" and "gelu_new" are the tanh form (Hendrycks and Gimpel 2016,
    arXiv:1606.08415), which is what the original's code computes.
    """
    return {
        "gelu": _gelu_tanh,
        "gelu_new": _gelu_tanh,
        "gelu_erf": _gelu_erf,
        "relu": ops.relu,
        "tanh": ops.tanh,
        "linear": None,
    }[name]


class Factory:
    """Makes the parts of one layer, each with initial weights of its own.

    Args:
        config: sizes.
        seed: of the initial weights.
        scope: name of the layer in its network; with the part's name it
            decides the part's weights.
    """

    def __init__(self, config: BertConfig, seed: int, scope: str):
        self._config, self._seed, self._scope = config, seed, scope

    def initializer(self, name: str) -> keras.initializers.Initializer:
        """Normal, cut off at two standard deviations."""
        seed = zlib.crc32(f"{self._seed}/{self._scope}/{name}".encode())
        return keras.initializers.TruncatedNormal(
            stddev=self._config.initializer_range, seed=seed
        )

    def dense(self, units: int, name: str, **kwargs) -> keras.layers.Dense:
        """x W + b, W of [inputs, units]."""
        return keras.layers.Dense(
            units,
            kernel_initializer=self.initializer(name),
            name=name,
            **kwargs,
        )

    def dropout(self, rate: float, name: str) -> Dropout:
        """A dropout layer with a number of its own."""
        salt = zlib.crc32(f"{self._scope}/{name}".encode()) & 0x7FFFFFFF
        return Dropout(rate, salt, name=name)

    def layer_norm(
        self, name: str = "LayerNorm"
    ) -> keras.layers.LayerNormalization:
        """Layer normalisation with the original's epsilon."""
        return keras.layers.LayerNormalization(
            epsilon=LAYER_NORM_EPSILON, name=name
        )


class Embeddings(keras.layers.Layer):
    """Sum of word, segment and position vectors, normalised."""

    def __init__(self, config: BertConfig, seed: int, **kwargs):
        super().__init__(name="embeddings", **kwargs)
        self.config = config
        make = Factory(config, seed, "embeddings")
        width = config.hidden_size

        def table(name: str, rows: int):
            return self.add_weight(
                shape=(rows, width),
                initializer=make.initializer(name),
                name=name,
            )

        self.word_embeddings = table("word_embeddings", config.vocab_size)
        self.token_type_embeddings = table(
            "token_type_embeddings", config.type_vocab_size
        )
        self.position_embeddings = table(
            "position_embeddings", config.max_position_embeddings
        )
        self.layer_norm = make.layer_norm()
        self.dropout = make.dropout(config.hidden_dropout_prob, "dropout")

    def call(self, input_ids, segment_ids, position_ids=None, training=False):
        """Three times int32 [B, S] -> float [B, S, H].

        Without `position_ids` a row is one sequence.
        """
        length = ops.shape(input_ids)[1]
        positions = self.position_embeddings[:length]
        if position_ids is not None:
            positions = ops.take(self.position_embeddings, position_ids, axis=0)
        # A matrix product gives a dense gradient for the two rows.
        segments = ops.one_hot(
            segment_ids, self.config.type_vocab_size, dtype=self.compute_dtype
        )
        x = (
            ops.take(self.word_embeddings, input_ids, axis=0)
            + ops.matmul(segments, self.token_type_embeddings)
            + positions
        )  # [B, S, H]
        return self.dropout(self.layer_norm(x), training=training)


class AttentionMask(keras.layers.Layer):
    """What is added to attention scores, so that padding gets no weight."""

    def call(self, input_mask):
        """int32 [B, S], 1 = piece -> float32 [B, 1, 1, S]."""
        padding = 1.0 - ops.cast(input_mask, "float32")
        return ops.expand_dims(padding, (1, 2)) * MASKED_SCORE


class SequenceMask(keras.layers.Layer):
    """What keeps attention inside each sequence of a row."""

    def call(self, sequence_ids):
        """int32 [B, S], 0 = padding -> float32 [B, 1, S, S]."""
        keys = ops.expand_dims(sequence_ids, 1)
        other = ops.expand_dims(sequence_ids, 2) != keys
        return ops.expand_dims(ops.cast(other, "float32"), 1) * MASKED_SCORE


class SelfAttention(keras.layers.Layer):
    """Scaled dot-product attention with A heads."""

    def __init__(self, config: BertConfig, seed: int, scope: str, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        make = Factory(config, seed, scope)
        self.query = make.dense(config.hidden_size, "query")
        self.key = make.dense(config.hidden_size, "key")
        self.value = make.dense(config.hidden_size, "value")
        self.dropout = make.dropout(
            config.attention_probs_dropout_prob, "probs_dropout"
        )

    def call(self, x, adder, training=False):
        """float [B, S, H], float32 [B, 1, 1 or S, S] -> float [B, S, H].

        `adder` is added to the scores.
        """
        q = self._heads(self.query(x))  # [B, A, S, D]
        k = self._heads(self.key(x))  # [B, A, S, D]
        v = self._heads(self.value(x))  # [B, A, S, D]
        scores = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2)))  # [B, A, S, S]
        scores = ops.cast(scores, "float32") * (1.0 / math.sqrt(q.shape[-1]))
        scores = scores + ops.cast(adder, "float32")
        probs = ops.cast(ops.softmax(scores), self.compute_dtype)
        context = ops.matmul(self.dropout(probs, training=training), v)
        context = ops.transpose(context, (0, 2, 1, 3))  # [B, S, A, D]
        return ops.reshape(context, ops.shape(x))

    def _heads(self, x):
        """[B, S, H] -> [B, A, S, D]."""
        batch, length, width = ops.shape(x)
        heads = self.config.num_attention_heads
        x = ops.reshape(x, (batch, length, heads, width // heads))
        return ops.transpose(x, (0, 2, 1, 3))


class TransformerBlock(keras.layers.Layer):
    """Attention and feed-forward, each with residual and layer norm."""

    def __init__(self, config: BertConfig, seed: int, index: int):
        name = f"layer_{index}"
        super().__init__(name=name)
        self.config = config
        make = Factory(config, seed, name)
        self.attention = SelfAttention(config, seed, name, name="self")
        self.attention_output = make.dense(
            config.hidden_size, "attention_output"
        )
        self.attention_dropout = make.dropout(
            config.hidden_dropout_prob, "attention_dropout"
        )
        self.attention_layer_norm = make.layer_norm("attention_LayerNorm")
        self.intermediate = make.dense(
            config.intermediate_size,
            "intermediate",
            activation=activation(config.hidden_act),
        )
        self.output_dense = make.dense(config.hidden_size, "output")
        self.output_dropout = make.dropout(
            config.hidden_dropout_prob, "output_dropout"
        )
        self.output_layer_norm = make.layer_norm("output_LayerNorm")

    def call(self, x, adder, training=False):
        """float [B, S, H], float32 [B, 1, 1 or S, S] -> float [B, S, H]."""
        attended = self.attention(x, adder, training=training)
        attended = self.attention_output(attended)
        attended = self.attention_dropout(attended, training=training)
        x = self.attention_layer_norm(attended + x)
        hidden = self.output_dense(self.intermediate(x))
        hidden = self.output_dropout(hidden, training=training)
        return self.output_layer_norm(hidden + x)


def _gelu_tanh(x):
    return ops.gelu(x, approximate=True)


def _gelu_erf(x):
    return ops.gelu(x, approximate=False)
