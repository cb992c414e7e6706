"""An independent forward pass of the original network in numpy, float64.

Weights are looked up by their names in the original's checkpoints.
"""

import numpy as np


def forward(weights: dict, batch: dict, num_layers: int, num_heads: int):
    """Encoder outputs and the log-probabilities of both heads."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    ids = batch["input_ids"]
    x = w["bert/embeddings/word_embeddings"][ids]
    x = x + w["bert/embeddings/token_type_embeddings"][batch["segment_ids"]]
    x = x + w["bert/embeddings/position_embeddings"][: ids.shape[1]]
    x = layer_norm(x, w, "bert/embeddings/LayerNorm")
    layers = []
    for index in range(num_layers):
        scope = f"bert/encoder/layer_{index}"
        heads = attention(x, batch["input_mask"], w, scope, num_heads)
        attended = dense(heads, w, f"{scope}/attention/output/dense")
        x = layer_norm(x + attended, w, f"{scope}/attention/output/LayerNorm")
        hidden = gelu(dense(x, w, f"{scope}/intermediate/dense"))
        hidden = dense(hidden, w, f"{scope}/output/dense")
        x = layer_norm(x + hidden, w, f"{scope}/output/LayerNorm")
        layers.append(x)
    pooled = np.tanh(dense(x[:, 0], w, "bert/pooler/dense"))
    rows = np.arange(len(x))[:, None]
    places = x[rows, batch["masked_lm_positions"]]
    places = gelu(dense(places, w, "cls/predictions/transform/dense"))
    places = layer_norm(places, w, "cls/predictions/transform/LayerNorm")
    masked_lm = places @ w["bert/embeddings/word_embeddings"].T
    next_sentence = pooled @ w["cls/seq_relationship/output_weights"].T
    return {
        "encoder_outputs": layers,
        "pooled_output": pooled,
        "masked_lm": log_softmax(masked_lm + w["cls/predictions/output_bias"]),
        "next_sentence": log_softmax(
            next_sentence + w["cls/seq_relationship/output_bias"]
        ),
    }


def attention(x, mask, w, scope, num_heads):
    """softmax(q k / sqrt(d) - 10000 where padded) v, one head at a time."""
    q, k, v = (
        dense(x, w, f"{scope}/attention/self/{name}")
        for name in ("query", "key", "value")
    )
    depth = x.shape[-1] // num_heads
    out = np.zeros_like(x)
    for head in range(num_heads):
        part = slice(head * depth, (head + 1) * depth)
        scores = np.einsum("bqd,bkd->bqk", q[..., part], k[..., part])
        scores = scores / np.sqrt(depth)
        scores = scores + (1.0 - mask[:, None, :]) * -10000.0
        probs = np.exp(log_softmax(scores))
        out[..., part] = np.einsum("bqk,bkd->bqd", probs, v[..., part])
    return out


def dense(x, w, scope):
    """x W + b."""
    return x @ w[f"{scope}/kernel"] + w[f"{scope}/bias"]


def layer_norm(x, w, scope):
    """Normalised over the last axis, epsilon 1e-12."""
    centred = x - x.mean(-1, keepdims=True)
    variance = np.square(centred).mean(-1, keepdims=True)
    normal = centred / np.sqrt(variance + 1e-12)
    return normal * w[f"{scope}/gamma"] + w[f"{scope}/beta"]


def gelu(x):
    """The tanh form."""
    cubic = np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1.0 + np.tanh(cubic))


def log_softmax(x):
    """Over the last axis."""
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
