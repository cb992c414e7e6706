"""Pools token outputs to one embedding per text, in NumPy."""

import dataclasses
from typing import Self

import numpy as np

from bert.common.errors import UserError

POOLINGS = ("mean", "max", "cls")


@dataclasses.dataclass(frozen=True)
class PoolingConfig:
    """Pooling configuration of the embeddings of a model.

    Attributes:
        pooling: str. One of `POOLINGS`, or "none" for token embeddings.
            Default: "mean".
        normalize: bool. Whether embeddings are scaled to length 1. Default:
            False.
        prompts: dict. Name -> text that is prepended to a text.
        default_prompt: str or None. Name of the prompt that is used if the
            caller does not name a prompt.
        truncate_dim: int or None. Number of dimensions to keep. Truncation is
            before normalization. Default: all.
        mistake: UserError or None. Reason why the embeddings are not supported.
    """

    pooling: str = "mean"
    normalize: bool = False
    prompts: dict[str, str] = dataclasses.field(default_factory=dict)
    default_prompt: str | None = None
    truncate_dim: int | None = None
    mistake: UserError | None = None

    def check(self) -> None:
        """Rejects unsupported configurations.

        Raises:
            UserError: The model has an unsupported pooling or module.
        """
        if self.mistake:
            raise self.mistake

    def resolve(
        self, pooling: str | None = None, normalize: bool | None = None
    ) -> Self:
        """Returns the configuration, with the given values where not None.

        Args:
            pooling: str or None. Default: None, the pooling of the model.
            normalize: bool or None. Default: None, as the model.

        Raises:
            UserError: no pooling is given, and the model's is unsupported.
        """
        if pooling is None:
            self.check()
        return dataclasses.replace(
            self,
            pooling=pooling or self.pooling,
            normalize=self.normalize if normalize is None else normalize,
            mistake=None,
        )

    def prompt(self, name: str | None) -> str:
        """Returns the text that is prepended to each text.

        Args:
            name: str or None. Name of a prompt. None: the default prompt, if
                the model has one.

        Raises:
            UserError: The model does not have this prompt.
        """
        name = self.default_prompt if name is None else name
        if name is None:
            return ""
        if name not in self.prompts:
            names = ", ".join(self.prompts) or "none: the model has no prompts"
            raise UserError(f"prompt={name!r}", expected=names)
        return self.prompts[name]

    def size(self, hidden_size: int) -> int:
        """Returns the size of an embedding, at most H."""
        return min(self.truncate_dim or hidden_size, hidden_size)

    def embed(self, x: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
        """Pools, truncates and normalizes the outputs of an encoder.

        Args:
            x: float32 [B, S, ..., H]. Outputs of the tokens. Without a mask:
                [..., H], pooled outputs.
            mask: int32 [B, S] or None. 1 = token, 0 = padding.

        Returns:
            float32 [B, ..., D]. [B, S, ..., D] if the pooling is "none".
        """
        if mask is not None:
            x = pool(x, mask, self.pooling)
        x = x[..., : self.truncate_dim]
        if self.normalize:
            lengths = np.linalg.norm(x, axis=-1, keepdims=True)
            x = x / np.maximum(lengths, 1e-12)
        return x

    def embed_one(self, x: np.ndarray) -> np.ndarray:
        """Embeds one text: float32 [S, H] -> float32 [D]; see `embed`."""
        return self.embed(x[np.newaxis], np.ones((1, len(x)), np.int32))[0]


def pool(x: np.ndarray, mask: np.ndarray, pooling: str) -> np.ndarray:
    """Pools the outputs of the tokens to one embedding per text.

    Args:
        x: float32 [B, S, ...].
        mask: int32 [B, S]. 1 = token, 0 = padding.
        pooling: str. `cls`: output of the first token; `mean`, `max`: over
            all tokens, including `[CLS]` and `[SEP]`; `none`: no pooling.

    Returns:
        float32 [B, ...], or `x` for `none`.
    """
    if pooling == "none":
        return x
    if pooling == "cls":
        return x[:, 0]
    if pooling == "max":
        mask = mask.reshape(*mask.shape, *[1] * (x.ndim - 2)).astype(bool)
        return x.max(1, where=mask, initial=-np.inf)

    # Several times as fast as `x.mean(1, where=mask)`, with the same bits.
    total = np.einsum("bs,bs...->b...", mask.astype(x.dtype), x)
    count = mask.sum(1).reshape(-1, *[1] * (x.ndim - 2))
    return total / count.astype(x.dtype)
