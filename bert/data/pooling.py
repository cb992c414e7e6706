"""Pooling of the vectors of tokens to one vector of a text."""

import numpy as np


def pool(x: np.ndarray, mask: np.ndarray, pooling: str) -> np.ndarray:
    """Pools the vectors of the tokens to one vector per text.

    Args:
        x: float32 [B, S, ...].
        mask: int32 [B, S], 1 = token.
        pooling: `cls`: vector of the first token; `mean`, `max`: over all
            tokens, including `[CLS]` and `[SEP]`; `none`: no pooling.

    Returns:
        float32 [B, ...], or `x` for `none`.
    """
    if pooling == "none":
        return x
    if pooling == "cls":
        return x[:, 0]
    mask = mask.reshape(*mask.shape, *[1] * (x.ndim - 2)).astype(bool)
    if pooling == "max":
        return x.max(1, where=mask, initial=-np.inf)
    return x.mean(1, where=mask)
