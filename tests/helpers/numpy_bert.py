"""The original network's forward pass and its optimizers in numpy, float64.

Weights are looked up by their names in the original's checkpoints.
"""

import numpy as np


def forward(weights: dict, batch: dict, num_layers: int, num_heads: int):
    """Encoder outputs and the log-probabilities of both heads."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    layers, pooled = encode(w, batch, num_layers, num_heads)
    x = layers[-1]
    rows = np.arange(len(x))[:, None]
    masked = x[rows, batch["masked_lm_positions"]]
    masked = gelu(dense(masked, w, "cls/predictions/transform/dense"))
    masked = layer_norm(masked, w, "cls/predictions/transform/LayerNorm")
    masked_lm = masked @ w["bert/embeddings/word_embeddings"].T
    next_sentence = pooled @ w["cls/seq_relationship/output_weights"].T
    return {
        "encoder_outputs": layers,
        "pooled_output": pooled,
        "masked_lm": log_softmax(masked_lm + w["cls/predictions/output_bias"]),
        "next_sentence": log_softmax(
            next_sentence + w["cls/seq_relationship/output_bias"]
        ),
    }


def encode(w: dict, batch: dict, num_layers: int, num_heads: int):
    """The outputs of all layers, and the pooled output."""
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
    return layers, np.tanh(dense(x[:, 0], w, "bert/pooler/dense"))


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


class NumpyAdam:
    """The update of a rule, one variable at a time, after the clip."""

    def __init__(self, values, rule="bert_adam"):
        self.values = dict(values)
        self.rule = rule
        self.steps = 0
        self.m = {name: np.zeros_like(v) for name, v in values.items()}
        self.v = {name: np.zeros_like(v) for name, v in values.items()}

    def step(self, gradients, rate):
        norm = np.sqrt(sum(np.square(g).sum() for g in gradients.values()))
        self.steps += 1
        for name, gradient in gradients.items():
            g = gradient * min(1.0, 1.0 / norm)
            self.m[name] = 0.9 * self.m[name] + 0.1 * g
            self.v[name] = 0.999 * self.v[name] + 0.001 * g * g
            m, v, x = self.m[name], self.v[name], self.values[name]
            if self.rule != "bert_adam":
                m = m / (1 - 0.9**self.steps)
                v = v / (1 - 0.999**self.steps)
            update = m / (np.sqrt(v) + 1e-6)
            if not any(part in name for part in ("LayerNorm", "bias")):
                update += 0.01 * x
                lengths = np.linalg.norm(x), np.linalg.norm(update)
                if self.rule == "lamb" and all(lengths):
                    update *= lengths[0] / lengths[1]
            self.values[name] = x - rate * update
        return norm
