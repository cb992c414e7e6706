"""Vectors and attention of texts, to look at one text at a time."""

import numpy as np

from bert.data import features
from bert.data.pooling import TextVectors
from bert.modeling import attention, checkpoints, encoder
from bert.modeling.formats.model_folder import ModelFolder


class Inspector:
    """The encoder of a checkpoint.

    Args:
        model: with its config and tokenizer.
        max_tokens: of a sequence, with [CLS] and [SEP]; the rest is cut.
    """

    def __init__(
        self,
        model: ModelFolder,
        max_tokens: int = 48,
    ):
        config, self._tokenizer = model.config, model.tokenizer
        self._length = config.max_position_embeddings
        self._max_tokens = min(max_tokens, self._length)
        model.check_sizes()
        self._model = encoder.build_encoder(config)
        named = checkpoints.encoder_variables(self._model)
        checkpoints.assign(named, model.weights()[0], model.path)

    def similarities(self, text: str, others: list[str]) -> list[float]:
        """Cosines of the mean vectors of the last layer of text and others."""
        vectors = []
        for line in (text, *others):
            _, inputs = self._inputs(line, "", self._length)
            x = np.asarray(self._model(inputs)["sequence_output"])
            how = TextVectors("mean", normalize=True)
            vectors += list(how.embed(x, inputs[features.INPUT_MASK]))
        return [float(vectors[0] @ vector) for vector in vectors[1:]]

    def attention(
        self, first: str, second: str, layer: int, head: int
    ) -> tuple[list[str], list[list[float]]]:
        """Attention probabilities of a head between the tokens of a text.

        Args:
            first: the text.
            second: another for the second segment, or "".
            layer, head: indices, from 0.

        Returns:
            the tokens, and for each the probabilities of all tokens.
        """
        ids, inputs = self._inputs(first, second, self._max_tokens)
        probs = attention.probabilities(self._model, inputs, layer)
        tokens = [self._tokenizer.tokens[i] for i in ids]
        return tokens, np.asarray(probs)[0, head].tolist()

    def _inputs(self, first: str, second: str, length: int):
        """The ids of a pair, and the encoder's inputs, [1, S] each."""
        ((ids, segments),) = self._tokenizer.rows([first], [second], length)
        rows = np.array([ids, np.ones_like(ids), segments], np.int32)[:, None]
        return ids, dict(zip(features.ENCODER_INPUTS, rows))
