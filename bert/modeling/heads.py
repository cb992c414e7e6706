"""Layers on the encoder: output heads, pooling, and folding of choices."""

import keras
from keras import ops

from bert.modeling import fused_ops, layers
from bert.modeling.config import BertConfig
from bert.modeling.task_heads import MASKED_LM

_NO_TOKEN = -1e9  # added to the hidden states of padding


@keras.saving.register_keras_serializable("bert")
class MaskedLMHead(keras.layers.Layer):
    """Masked LM head: logits of all tokens at the masked positions.

    Dense layer and layer norm, then the product with the encoder's word
    embeddings, plus a bias. The product is always summed in float32, because
    the highest logits are often equal in half precision.

    Args:
        config: BertConfig. Sizes of the network.
        seed: int. Seed of the initial weights.
        name: str. Name of the layer. Default: "predictions".
        dtype: dtype policy or None. Policy of the dense layer. Default: None,
            Keras' global policy.
    """

    def __init__(
        self,
        config: BertConfig | dict,
        seed: int,
        name: str = MASKED_LM,
        dtype=None,
        **kwargs,
    ):
        super().__init__(name=name, dtype="float32", **kwargs)
        self.config = config = layers.as_config(config)
        self.seed = seed

        # The logits are always float32; the parts have their own policy.
        make = layers.LayerFactory(config, seed, MASKED_LM, dtype)
        self.transform = make.dense(
            config.hidden_size,
            "transform",
            activation=layers.activation(config.hidden_act),
        )
        self.layer_norm = make.layer_norm()

        self.output_bias = self.add_weight(
            shape=(config.vocab_size,), initializer="zeros", name="output_bias"
        )

    def get_config(self):
        """The layer's arguments."""
        # The layer's own policy is fixed; its parts' policy is saved.
        policy = self.layer_norm.dtype_policy
        return layers.serialize_config(self, super().get_config(), policy)

    def call(self, x, table):
        """Computes the logits.

        Args:
            x: float [B, P, H]. Last layer at the masked positions.
            table: float32 [V, H]. Word embeddings of the encoder.

        Returns:
            float32 [B, P, V].
        """
        x = self.layer_norm(self.transform(x))  # [B, P, H]

        # A single matrix product: [B * P, H] and [V, H].
        batch, count, width = ops.shape(x)
        logits = fused_ops.vocab_logits(ops.reshape(x, (-1, width)), table)
        logits = ops.reshape(logits, (batch, count, self.config.vocab_size))
        return logits + self.output_bias


@keras.saving.register_keras_serializable("bert")
class OutputHead(keras.layers.Layer):
    """Logits of C classes: x W^T + b, as in each task of the original.

    Always computed in float32.

    Args:
        config: BertConfig. Sizes of the network.
        seed: int. Seed of the initial weights.
        classes: int. C.
        name: str. Name of the layer, which also seeds its initial weights.
        bias: bool. Whether there is a b; else `output_bias` is None.
            Default: True.
    """

    def __init__(
        self,
        config: BertConfig | dict,
        seed: int,
        classes: int,
        name: str,
        bias: bool = True,
        dtype="float32",
        **kwargs,
    ):
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.config = config = layers.as_config(config)
        self.seed, self.classes = seed, classes

        make = layers.LayerFactory(config, seed, name)
        self.output_weights = self.add_weight(
            shape=(classes, config.hidden_size),
            initializer=make.initializer("output_weights"),
            name="output_weights",
        )

        self.output_bias = None
        if bias:
            self.output_bias = self.add_weight(
                shape=(classes,), initializer="zeros", name="output_bias"
            )

    def get_config(self):
        """The layer's arguments."""
        return {
            **layers.serialize_config(self, super().get_config()),
            "classes": self.classes,
            "bias": self.output_bias is not None,
        }

    def call(self, x):
        """float [..., H] -> float32 [..., C]."""
        # The original stores W as [C, H].
        logits = ops.matmul(x, ops.transpose(self.output_weights))
        if self.output_bias is not None:
            logits = logits + self.output_bias
        return logits


@keras.saving.register_keras_serializable("bert")
class PoolTexts(keras.layers.Layer):
    """Pools token embeddings, and unfolds the texts from the batch.

    Args:
        pooling: str. "cls", "mean" or "max".
    """

    def __init__(self, pooling: str, **kwargs):
        super().__init__(**kwargs)
        self.pooling = pooling

    def call(self, x, mask):
        """[B * T, S, H] and int32 [B, T, S] -> [B, T, H]."""
        shape = (*ops.shape(mask)[:2], x.shape[-1])
        if self.pooling == "cls":
            return ops.reshape(x[:, 0], shape)

        weight = ops.reshape(ops.cast(mask, x.dtype), (-1, ops.shape(x)[1], 1))
        if self.pooling == "max":
            pooled = ops.max(x + (1.0 - weight) * _NO_TOKEN, 1)
        else:
            pooled = ops.sum(x * weight, 1) / ops.sum(weight, 1)
        return ops.reshape(pooled, shape)

    def get_config(self):
        """The layer's arguments."""
        return {**super().get_config(), "pooling": self.pooling}


@keras.saving.register_keras_serializable("bert")
class FoldChoices(keras.layers.Layer):
    """Folds the choices into the batch dimension."""

    def call(self, x):
        """[B, C, S] -> [B * C, S]."""
        return ops.reshape(x, (-1, ops.shape(x)[-1]))


@keras.saving.register_keras_serializable("bert")
class UnfoldChoices(keras.layers.Layer):
    """Unfolds the choices from the batch dimension."""

    def call(self, scores, x):
        """[B * C, 1] and the unfolded input, [B, C, S] -> [B, C]."""
        return ops.reshape(scores, ops.shape(x)[:2])
