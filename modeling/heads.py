"""What stands on top of the encoder."""

import keras
from keras import ops

from modeling import layers
from modeling.config import BertConfig


class MaskedLMHead(keras.layers.Layer):
    """Scores every token of the vocabulary at the masked places only.

    Dense and layer norm, then the product with the word embeddings, which
    are the encoder's own, plus a bias. The product is computed in float32,
    whatever the network computes in: rounded to half precision, the highest
    scores are often equal.

    Args:
        config: sizes.
        seed: of the initial weights.
        embeddings: the encoder's embeddings.
    """

    def __init__(
        self, config: BertConfig, seed: int, embeddings: layers.Embeddings
    ):
        super().__init__(name="predictions", dtype="float32")
        self.config = config
        make = layers.Factory(config, seed, "predictions")
        self.transform = make.dense(
            config.hidden_size,
            "transform",
            activation=layers.activation(config.hidden_act),
        )
        self.layer_norm = make.layer_norm()
        self.embeddings = embeddings
        self.output_bias = self.add_weight(
            shape=(config.vocab_size,), initializer="zeros", name="output_bias"
        )

    def call(self, x, positions=None):
        """Scores of places.

        Args:
            x: float [B, S, H].
            positions: int32 [B, P]; None: x is [B, P, H], of these places.

        Returns:
            float32 [B, P, V].
        """
        if positions is not None:
            x = layers.rows_at(x, positions)
        x = self.layer_norm(self.transform(x))  # [B, P, H]
        table = ops.convert_to_tensor(self.embeddings.word_embeddings)
        batch, places, width = ops.shape(x)
        x = ops.cast(ops.reshape(x, (-1, width)), "float32")
        logits = ops.matmul(x, ops.transpose(table))
        logits = ops.reshape(logits, (batch, places, self.config.vocab_size))
        return logits + self.output_bias


class OutputHead(keras.layers.Layer):
    """Scores C classes: x W^T + b, as each task of the original does.

    It computes in float32, whatever the network below computes in.

    Args:
        config: sizes.
        seed: of the initial weights.
        classes: C.
        name: of the layer, from which its initial weights follow.
        bias: with b; else `output_bias` is None.
    """

    def __init__(
        self,
        config: BertConfig,
        seed: int,
        classes: int,
        name: str,
        bias: bool = True,
    ):
        super().__init__(name=name, dtype="float32")
        make = layers.Factory(config, seed, name)
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

    def call(self, x):
        """float [..., H] -> float32 [..., C]."""
        logits = ops.matmul(x, ops.transpose(self.output_weights))
        if self.output_bias is not None:
            logits = logits + self.output_bias
        return logits
