"""Random batches, the same for every system."""

import numpy as np


def training_batch(
    vocab_size: int, batch_size: int, length: int, masks: int
) -> dict:
    """Creates a pre-training batch without padding.

    Args:
        vocab_size: V.
        batch_size, length, masks: B, S and P.

    Returns:
        int32 arrays under the original's names.
    """
    rng = np.random.default_rng(1)
    positions = [
        1 + rng.choice(length - 1, masks, replace=False)
        for _ in range(batch_size)
    ]
    return {
        "input_ids": rng.integers(
            5, vocab_size, (batch_size, length), np.int32
        ),
        "input_mask": np.ones((batch_size, length), np.int32),
        "segment_ids": rng.integers(0, 2, (batch_size, length), np.int32),
        "masked_lm_positions": np.sort(positions, axis=1).astype(np.int32),
        "masked_lm_ids": rng.integers(
            5, vocab_size, (batch_size, masks), np.int32
        ),
        "next_sentence_labels": rng.integers(0, 2, (batch_size, 1), np.int32),
    }


def encoder_batch(vocab_size: int, batch_size: int, length: int) -> dict:
    """Creates a batch for inference, without labels."""
    whole = training_batch(vocab_size, batch_size, length, 1)
    names = ("input_ids", "input_mask", "segment_ids")
    return {name: whole[name] for name in names}
