"""A small network and batch for tests; sizes are distinct primes."""

import numpy as np
import tensorflow as tf

from bert.data import feature_names
from bert.modeling.config import BertConfig

B, S, P, V = 2, 11, 3, 97
L, H, A, INTERMEDIATE, POSITIONS = 2, 15, 5, 19, 13


def config(**changed) -> BertConfig:
    """A config of the sizes above, without dropout."""
    values = {
        "vocab_size": V,
        "hidden_size": H,
        "num_hidden_layers": L,
        "num_attention_heads": A,
        "intermediate_size": INTERMEDIATE,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "initializer_range": 0.2,
    }
    return BertConfig.from_dict({**values, **changed})


def batch(seed: int = 7, rows: int = B) -> dict[str, np.ndarray]:
    """A pre-training batch with padding and unused masked positions."""
    rng = np.random.default_rng(seed)
    length = rng.integers(5, S + 1, rows)
    mask = (np.arange(S) < length[:, None]).astype(np.int32)
    weights = (np.arange(P) < rng.integers(1, P + 1, rows)[:, None]) * 1.0
    return {
        "input_ids": rng.integers(1, V, (rows, S), np.int32) * mask,
        "input_mask": mask,
        "segment_ids": (np.arange(S) > length[:, None] // 2) * mask,
        "masked_lm_positions": rng.integers(1, 5, (rows, P), np.int32),
        "masked_lm_ids": rng.integers(1, V, (rows, P), np.int32),
        "masked_lm_weights": weights.astype(np.float32),
        "next_sentence_labels": rng.integers(0, 2, (rows, 1), np.int32),
        "is_real_example": np.ones(rows, np.float32),
    }


def rows_of(lengths, width: int) -> dict[str, tf.Tensor]:
    """Random sequences; position 1 of those from 3 tokens on is masked."""
    rng = np.random.default_rng(0)
    lengths = np.array(lengths, int).reshape(-1, 1)
    mask = np.arange(width) < lengths
    mask &= (np.arange(width) != 1) | (lengths < 3)
    ids = rng.integers(1, V, mask.shape)
    return {
        feature_names.INPUT_IDS: tf.constant(ids * mask, tf.int32),
        feature_names.INPUT_MASK: tf.constant(mask, tf.int32),
        feature_names.SEGMENT_IDS: tf.zeros(mask.shape, tf.int32),
    }
