"""Outputs of encoder layers: texts -> sequences -> vectors.

No TensorFlow is imported.
"""

from collections.abc import Callable

from numpy.typing import NDArray

from bert.data.pooling import PoolingConfig
from bert.data.sequences import Encoded
from bert.data.text.tokenizer import Tokenizer
from bert.tasks.task import Task

TEXT, TEXT_B = "text", "text_b"


class LayerOutputs(Task):
    """Outputs of encoder layers for texts or pairs of texts.

    Args:
        tokenizer: the model's tokenizer.
        max_length: int. Longest sequence in tokens; longer texts are
            truncated.
        pooling_config: pooling of the tokens, size and normalization.
        layer_pooling: str. "none", "sum", "mean" or "concat", see
            extract_features.py.
        prompt: str. Text before each first text.
    """

    name = "features"
    head, num_outputs = None, None
    pooling_config: PoolingConfig
    inputs, optional_inputs = (TEXT,), (TEXT_B,)

    def __init__(
        self,
        tokenizer: Tokenizer,
        max_length: int,
        pooling_config: PoolingConfig,
        layer_pooling: str = "none",
        prompt: str = "",
    ):
        self._tokenizer, self.max_length = tokenizer, max_length
        self.pooling_config = pooling_config
        self._layer_pooling, self._prompt = layer_pooling, prompt

    def encode(self, examples: list[dict[str, str]]) -> list[Encoded]:
        """Converts texts to sequences.

        Args:
            examples: dicts of `text` and, for pairs, `text_b`.
        """
        texts = [self._prompt + x[TEXT] for x in examples]
        pairs = [x.get(TEXT_B, "") for x in examples]
        return self._tokenizer.encode_texts(texts, pairs, self.max_length)

    def combine(self, encoded: Encoded, outputs: list[NDArray]) -> NDArray:
        """Combines layers and pools tokens.

        Args:
            encoded: the text.
            outputs: one array, float32 [S, K, H], the K layers.

        Returns:
            float32 [S, K, H]; without S if tokens are pooled, and without K
            if layers are combined.
        """
        (x,) = outputs
        mixed: dict[str, Callable[[], NDArray]] = {
            "sum": lambda: x.sum(1),
            "mean": lambda: x.mean(1),
            "concat": lambda: x.reshape(len(x), -1),
            "none": x.copy,  # a view would keep the whole batch in memory
        }
        return self.pooling_config.embed_one(mixed[self._layer_pooling]())
