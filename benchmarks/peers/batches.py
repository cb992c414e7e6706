"""The same random rows for every system."""

import numpy as np


def training_rows(vocab_size: int, rows: int, length: int, places: int) -> dict:
    """A pre-training batch without padding.

    Args:
        vocab_size: V.
        rows, length, places: B, S and P.

    Returns:
        int32 arrays under the original's names.
    """
    rng = np.random.default_rng(1)
    positions = [
        1 + rng.choice(length - 1, places, replace=False) for _ in range(rows)
    ]
    return {
        "input_ids": rng.integers(5, vocab_size, (rows, length), np.int32),
        "input_mask": np.ones((rows, length), np.int32),
        "segment_ids": rng.integers(0, 2, (rows, length), np.int32),
        "masked_lm_positions": np.sort(positions, axis=1).astype(np.int32),
        "masked_lm_ids": rng.integers(5, vocab_size, (rows, places), np.int32),
        "next_sentence_labels": rng.integers(0, 2, (rows, 1), np.int32),
    }


def encoder_rows(vocab_size: int, rows: int, length: int) -> dict:
    """Rows for inference: as above, without what is masked."""
    whole = training_rows(vocab_size, rows, length, 1)
    names = ("input_ids", "input_mask", "segment_ids")
    return {name: whole[name] for name in names}
