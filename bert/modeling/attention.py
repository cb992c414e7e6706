"""Attention probabilities of an encoder, for inspection."""

import math

import keras
from keras import ops

from bert.data import features
from bert.modeling.layers import split_heads


def probabilities(
    encoder: keras.Model, inputs: dict, layer: int
) -> keras.KerasTensor:
    """Computes the attention probabilities of a layer.

    Args:
        encoder: keras.Model. Encoder from `build_encoder`, not packed.
        inputs: dict. Inputs of the encoder, int32 [B, S] each.
        layer: int. Index of the layer, from 0.

    Returns:
        float32 [B, A, S, S]. Probabilities sum to 1 over the last dimension.
    """
    outputs = encoder(inputs)
    x = [outputs["embedding_output"], *outputs["encoder_outputs"]][layer]
    bias = encoder.get_layer("attention_bias")(inputs[features.INPUT_MASK])
    block = encoder.get_layer(f"layer_{layer}")
    heads = block.config.num_attention_heads
    q = split_heads(block.attention.query(x), x, heads)  # [B, A, S, D]
    k = split_heads(block.attention.key(x), x, heads)
    scores = ops.cast(ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))), "float32")
    return ops.softmax(scores / math.sqrt(q.shape[-1]) + bias)
