"""Embeddings of texts: examples -> sequences -> token vectors -> embeddings.

No TensorFlow is imported.
"""

from typing import Any

import numpy as np

from bert.data.pooling import PoolingConfig
from bert.data.sequences import Encoded
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.formats.model_folder import ModelFolder

TEXT, VECTOR = "text", "vector"


class TextEmbedding:
    """Embeddings of texts.

    Args:
        tokenizer: the model's tokenizer.
        how: pooling, prompts and normalization.
        max_length: int. Longest sequence in tokens; longer texts are
            truncated.
        prompt: str or None. Name of the prompt to put before each text.
            Default: the model's default prompt, if it has one.

    Attributes:
        inputs: names of the fields of an example.
    """

    head, num_outputs = None, None
    signatures = ("serving_default",)
    can_rank = True
    inputs, optional_inputs = (TEXT,), ()

    def __init__(
        self,
        tokenizer: Tokenizer,
        how: PoolingConfig,
        max_length: int,
        prompt: str | None = None,
    ):
        how.check()
        self._tokenizer, self._how = tokenizer, how
        self.max_length, self._prompt = max_length, how.prompt(prompt)

    @classmethod
    def from_model(cls, model: ModelFolder) -> "TextEmbedding":
        """The task of a model, as recorded in its `modules.json`."""
        return cls(model.tokenizer, model.pooling_config, model.max_length)

    def encode(self, examples: list[dict[str, str]]) -> list[Encoded]:
        """Converts texts to sequences.

        Args:
            examples: dicts of `text`.
        """
        texts = [self._prompt + x[TEXT] for x in examples]
        return self._tokenizer.encode_texts(
            texts, [""] * len(texts), self.max_length
        )

    def decode(
        self, encoded: list[Encoded], outputs: list[list[np.ndarray]]
    ) -> list[dict[str, Any]]:
        """Pools token vectors to embeddings.

        Args:
            encoded: N examples.
            outputs: the last layer, float32 [S, H], for each sequence.

        Returns:
            a dict for each example: `vector`, a list of H floats.
        """
        return [{VECTOR: self._how.embed_one(x).tolist()} for (x,) in outputs]
