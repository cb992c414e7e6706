"""Attention probabilities between the tokens of a text."""

import numpy as np

from bert.data import feature_names
from bert.modeling.encoder import attention_scores
from bert.modeling.formats.model_folder import ModelFolder


class Inspector:
    """The encoder of a checkpoint, for inspecting its attention.

    Args:
        model: the checkpoint, with config and tokenizer.
        max_tokens: int. Longest sequence with [CLS] and [SEP]; longer ones
            are truncated.

    Attributes:
        encoder: the encoder, with its weights.
    """

    def __init__(
        self,
        model: ModelFolder,
        max_tokens: int = 48,
    ):
        config, self._tokenizer = model.config, model.tokenizer
        self._max_tokens = min(max_tokens, config.max_position_embeddings)
        self.encoder = model.network()

    def attention(
        self, first: str, second: str, layer: int, head: int
    ) -> tuple[list[str], list[list[float]]]:
        """Attention probabilities of a head between the tokens of a text.

        Args:
            first: str. The text of the first segment.
            second: str. The text of the second segment, or "".
            layer, head: int. Indices, from 0.

        Returns:
            the tokens, and for each token the probabilities of all tokens.
        """
        ((ids, segments),) = self._tokenizer.rows(
            [first], [second], self._max_tokens
        )
        rows = np.array([ids, np.ones_like(ids), segments], np.int32)[:, None]
        inputs = dict(zip(feature_names.ENCODER_INPUTS, rows))
        probs = attention_scores(self.encoder, inputs, layer)
        tokens = [self._tokenizer.tokens[i] for i in ids]
        return tokens, np.asarray(probs)[0, head].tolist()
