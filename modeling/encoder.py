"""The encoder as a Keras functional model."""

import keras
from keras import ops

from data import features
from modeling import layers
from modeling.config import BertConfig


def build_encoder(
    config: BertConfig, seed: int = 12345, packed: bool = False
) -> keras.Model:
    """Builds the BERT encoder with fresh weights.

    Args:
        config: sizes.
        seed: of the initial weights.
        packed: whether a row holds several sequences.

    Returns:
        a functional model named "bert", with inputs, int32 [B, S] each:
            input_ids: token ids.
            input_mask: 1 = token, 0 = padding.
            segment_ids: 0 = first segment, 1 = second.
            position_ids: position in the sequence; only if `packed`.
            sequence_ids: number in the row, 0 = padding; only if `packed`.
            next_sentence_positions: int32 [B, K], positions of `[CLS]`; only
                if `packed`.
        and outputs, a dict:
            sequence_output: float [B, S, H], the last layer.
            pooled_output: float [B, H], tanh of a dense layer on `[CLS]`;
                if `packed`, [B, K, H].
            encoder_outputs: L times float [B, S, H], each layer.
            embedding_output: float [B, S, H], input of the first layer.
    """
    inputs = {
        name: keras.Input((None,), dtype="int32", name=name)
        for name in features.ENCODER_INPUTS
        + (features.PACKED_INPUTS if packed else ())
    }
    x = embedding_output = layers.Embeddings(config, seed)(
        inputs[features.INPUT_IDS],
        inputs[features.SEGMENT_IDS],
        inputs.get(features.POSITION_IDS),
    )
    if packed:
        attention_bias = layers.SequenceMask(name="sequence_mask")(
            inputs[features.SEQUENCE_IDS]
        )
    else:
        attention_bias = layers.AttentionMask(name="attention_mask")(
            inputs[features.INPUT_MASK]
        )
    encoder_outputs = []  # L x [B, S, H]
    for index in range(config.num_hidden_layers):
        x = layers.TransformerBlock(config, seed, index)(x, attention_bias)
        encoder_outputs.append(x)
    pooler = layers.Factory(config, seed, "pooler").dense(
        config.hidden_size, "pooler", activation="tanh"
    )
    first = x[:, 0]
    if packed:
        positions = inputs[features.NEXT_SENTENCE_POSITIONS]
        first = ops.take_along_axis(x, positions[:, :, None], axis=1)
    outputs = {
        "sequence_output": x,
        "pooled_output": pooler(first),
        "encoder_outputs": encoder_outputs,
        "embedding_output": embedding_output,
    }
    return keras.Model(inputs, outputs, name="bert")


def last_layer_at(
    encoder: keras.Model, inputs: dict, positions
) -> keras.KerasTensor:
    """Output of the last layer at some positions only.

    A position of the last layer reads all positions of the layer below, but
    no other of its own. If only `[CLS]` or masked tokens are read, most of
    the last layer need not be computed.

    Args:
        encoder: from `build_encoder`.
        inputs: as the encoder's.
        positions: int32 [B, Q].

    Returns:
        float [B, Q, H].
    """
    outputs = encoder(inputs)
    *_, below, _ = [outputs["embedding_output"], *outputs["encoder_outputs"]]
    for name, mask in (
        ("attention_mask", features.INPUT_MASK),
        ("sequence_mask", features.SEQUENCE_IDS),
    ):
        if name in (layer.name for layer in encoder.layers):
            attention_bias = encoder.get_layer(name)(inputs[mask])
    last = encoder.get_layer(f"layer_{len(outputs['encoder_outputs']) - 1}")
    return last(below, attention_bias, positions)
