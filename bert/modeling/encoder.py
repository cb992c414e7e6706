"""BERT encoder as a Keras functional model."""

import math
import zlib
from typing import Any

import keras
from keras import ops

from bert.data import feature_names
from bert.modeling import layers, transformer_block
from bert.modeling.config import BertConfig


@keras.saving.register_keras_serializable("bert")
class Encoder(keras.Model):
    """BERT encoder, a Keras functional model made by `build_encoder`.

    A position of the last layer reads all positions of the layer below, but
    no other position of the last layer. If only `[CLS]` or masked tokens are
    needed, most of the last layer is not computed: see `positions`.

        encoder = bert.new_encoder("tiny")
        encoder(inputs)["sequence_output"].shape  # [B, S, H]

    Attributes:
        checkpoint: ModelFolder or None. Checkpoint that `bert.load_encoder`
            has loaded, with the weights of its heads.
    """

    checkpoint: Any = None

    def call(self, inputs, training=None, mask=None, positions=None):
        """Computes all outputs, or the last layer at some positions.

        Args:
            inputs: dict. See `build_encoder`. With `sequence_ids` rows are
                packed, even if the encoder was built without `packed`.
            training: bool. Whether dropout is active. Default: None, False.
            mask: Keras' mask, which is not used.
            positions: int32 [B, Q] or None. Positions to compute; the first
                one (K if packed) is `[CLS]`. Default: None, all positions.

        Returns:
            Dict. Without `positions` see `build_encoder`; packed rows then
            have no `pooled_output` unless the encoder was built with `packed`.
            With `positions`:
                sequence_output: float [B, P, H]. Last layer at the positions
                    after `[CLS]`.
                pooled_output: float [B, H]; [B, K, H] if packed.
                word_embeddings: float32 [V, H]. The embedding table.
        """
        is_built = feature_names.SEQUENCE_IDS in self.input or not (
            isinstance(inputs, dict) and feature_names.SEQUENCE_IDS in inputs
        )
        if positions is None and is_built:
            return super().call(inputs, training=training)
        embeddings = self.get_layer("embeddings")
        block = transformer_block.TransformerBlock
        *below, last = (x for x in self.layers if isinstance(x, block))

        attention_bias = self.get_layer("attention_bias")(
            inputs[feature_names.INPUT_MASK],
            inputs.get(feature_names.SEQUENCE_IDS),
        )
        x = embedding_output = embeddings(
            inputs[feature_names.INPUT_IDS],
            inputs[feature_names.SEGMENT_IDS],
            inputs.get(feature_names.POSITION_IDS),
            training=training,
        )

        encoder_outputs = []  # L x [B, S, H]
        for block in below:
            x = block(x, attention_bias, training=training)
            encoder_outputs.append(x)

        # Compute the last layer only where it is read.
        x = last(x, attention_bias, positions, training=training)
        if positions is None:
            return {
                "sequence_output": x,
                "encoder_outputs": [*encoder_outputs, x],
                "embedding_output": embedding_output,
            }

        # `[CLS]` comes first; only the pooler reads it.
        first, count = x[:, 0], 1
        if feature_names.NEXT_SENTENCE_POSITIONS in inputs:
            count = ops.shape(inputs[feature_names.NEXT_SENTENCE_POSITIONS])[1]
            first = x[:, :count]

        return {
            "sequence_output": x[:, count:],
            "pooled_output": self.get_layer("pooler")(first),
            "word_embeddings": embeddings.word_embeddings.value,
        }

    def compute_output_spec(
        self, inputs, training=None, mask=None, positions=None
    ):
        """Shapes and types of the outputs of `call`."""
        if positions is None:
            return super().compute_output_spec(inputs, training=training)
        outputs = self.call(inputs, training, mask, positions)

        # The table is a variable, not a layer's output: Keras has no spec.
        table = outputs["word_embeddings"]
        dtype = keras.backend.standardize_dtype(table.dtype)
        spec = keras.KerasTensor(table.shape, dtype)
        return {**outputs, "word_embeddings": spec}

    def export(self, filepath, *args, **kwargs):
        """Exports as Keras does, but without the lists of outputs.

        Signatures cannot have lists, so only `sequence_output` and
        `pooled_output` are exported.
        """
        names = ("sequence_output", "pooled_output")
        outputs = {name: self.output[name] for name in names}
        model = keras.Model(self.input, outputs)
        model(self.input)  # some formats need a model that was called
        model.export(filepath, *args, **kwargs)

    def enable_lora(
        self, rank: int, lora_alpha: float | None = None, seed: int = 12345
    ) -> None:
        """Trains only low-rank updates of all dense layers (LoRA).

        Hu et al. 2021, arXiv:2106.09685. When the encoder is saved, the updates
        are added to the weights.

            encoder.enable_lora(rank=8)
            model = bert.classifier(encoder, num_labels=2)

        Args:
            rank: int. Rank of the updates.
            lora_alpha: float or None. Scale of the updates times the rank.
                Default: None, the rank.
            seed: int. Seed of the updates' initial weights. Default: 12345.
        """
        # Keras only freezes kernels, not norms and embedding tables.
        for variable in self.variables:
            variable.trainable = False
        for layer in self._flatten_layers():
            if isinstance(layer, keras.layers.Dense):
                key = zlib.crc32(f"{seed}/{layer.path}/lora".encode())
                first = keras.initializers.HeUniform(key)
                layer.enable_lora(rank, lora_alpha, first)


def build_encoder(
    config: BertConfig, seed: int = 12345, packed: bool = False
) -> Encoder:
    """Builds the BERT encoder with new, random weights.

    Args:
        config: BertConfig. Sizes of the network.
        seed: int. Seed of the initial weights. Default: 12345.
        packed: bool. Whether a row holds several sequences. Default: False.

    Returns:
        Functional model named "bert", with inputs, int32 [B, S] each:
            input_ids: token ids.
            input_mask: 1 = token, 0 = padding.
            segment_ids: 0 = first segment, 1 = second.
            position_ids: position in the sequence; only if `packed`.
            sequence_ids: number in the row, 0 = padding; only if `packed`.
            next_sentence_positions: int32 [B, K], positions of `[CLS]`; only
                if `packed`.
        and outputs, a dict:
            sequence_output: float [B, S, H]. The last layer.
            pooled_output: float [B, H], tanh of a dense layer on `[CLS]`;
                [B, K, H] if `packed`.
            encoder_outputs: L times float [B, S, H]. Each layer.
            embedding_output: float [B, S, H]. Input of the first layer.
    """
    inputs = {
        name: keras.Input((None,), dtype="int32", name=name)
        for name in feature_names.ENCODER_INPUTS
        + (feature_names.PACKED_INPUTS if packed else ())
    }

    x = embedding_output = layers.Embeddings(config, seed)(
        inputs[feature_names.INPUT_IDS],
        inputs[feature_names.SEGMENT_IDS],
        inputs.get(feature_names.POSITION_IDS),
    )
    attention_bias = layers.AttentionBias(name="attention_bias")(
        inputs[feature_names.INPUT_MASK], inputs.get(feature_names.SEQUENCE_IDS)
    )

    encoder_outputs = []  # L x [B, S, H]
    for index in range(config.num_hidden_layers):
        x = transformer_block.TransformerBlock(config, seed, index)(
            x, attention_bias
        )
        encoder_outputs.append(x)

    pooler = layers.LayerFactory(config, seed, "pooler").dense(
        config.hidden_size, "pooler", activation="tanh"
    )

    # A packed row has one `[CLS]` per sequence.
    first = x[:, 0]
    if packed:
        gather = layers.GatherPositions(name="first_tokens")
        first = gather(x, inputs[feature_names.NEXT_SENTENCE_POSITIONS])

    outputs = {
        "sequence_output": x,
        "pooled_output": pooler(first),
        "encoder_outputs": encoder_outputs,
        "embedding_output": embedding_output,
    }
    return Encoder(inputs, outputs, name="bert")


def attention_scores(
    encoder: keras.Model, inputs: dict, layer: int
) -> keras.KerasTensor:
    """Computes the attention probabilities of a layer, for inspection.

    Args:
        encoder: keras.Model. Encoder from `build_encoder`, not packed.
        inputs: dict. Inputs of the encoder, int32 [B, S] each.
        layer: int. Index of the layer, from 0.

    Returns:
        float32 [B, A, S, S]. Probabilities sum to 1 over the last dimension.
    """
    outputs = encoder(inputs)
    x = [outputs["embedding_output"], *outputs["encoder_outputs"]][layer]
    bias = encoder.get_layer("attention_bias")(inputs[feature_names.INPUT_MASK])
    block = encoder.get_layer(f"layer_{layer}")
    heads = block.config.num_attention_heads
    q = transformer_block.split_heads(
        block.attention.query(x), x, heads
    )  # [B, A, S, D]
    k = transformer_block.split_heads(block.attention.key(x), x, heads)
    scores = ops.cast(ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))), "float32")
    return ops.softmax(scores / math.sqrt(q.shape[-1]) + bias)
