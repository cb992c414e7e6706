"""SavedModel that computes the vector of a text, with its tokenizer.

    text -> ids -> network -> vector of length 1

It needs TensorFlow and TensorFlow Text, and no code of this project.
"""

import numpy as np
import tensorflow as tf

from bert.modeling import task_models
from bert.modeling.formats.model_folder import ModelFolder
from bert.serving import graphs
from bert.tasks.similarity.settings import Settings

TEXT, VECTOR = "text", "vector"


class Embedder(tf.train.Checkpoint):
    """Text to vector, as a SavedModel.

    Args:
        source: sizes of the network, and tokenizer.
        settings: of the script: pooling, and maximum S.
        weights: original name -> array, for all variables of the network.

    Attributes:
        serve: text, string [B] -> vector, float32 [B, D], of length 1.
        count_tokens: text -> `graphs.lengths_before_packing`.
        vocab_file: the vocabulary, as an asset.
        do_lower_case, strip_accents: casing of the tokenizer.
    """

    def __init__(
        self,
        source: ModelFolder,
        settings: Settings,
        weights: dict[str, np.ndarray],
    ):
        super().__init__()
        self._max_seq_length = settings.finetuning.max_seq_length
        vectors = settings.vectors(source)
        self._size = vectors.size(source.config.hidden_size)
        self._prompt = vectors.prompt(None)
        self._model, self._tokenizer = graphs.equip(
            self,
            task_models.build_similarity_model(source.config, vectors.pooling),
            weights,
            source.tokenizer,
        )
        text = {TEXT: tf.TensorSpec([None], tf.string)}
        self.serve = graphs.signature(self._answer, text)

        # By keyword: a positional argument has no name after loading.
        self.count_tokens = graphs.signature(
            lambda **strings: graphs.lengths_before_packing(
                [self._ids(strings[TEXT])], self._max_seq_length
            ),
            text,
        )

    def _ids(self, text: tf.Tensor) -> tf.RaggedTensor:
        return self._tokenizer.tokenize(self._prompt + text).merge_dims(1, 2)

    def _vectors(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """float32 [b, D], of sequences that are rows of their own."""
        alone = {name: x[:, tf.newaxis] for name, x in inputs.items()}
        x = self._model.value(alone, training=False)["vectors"]
        return x[:, 0, : self._size]

    def _answer(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        packed = graphs.pack(
            self._tokenizer, [self._ids(text)], self._max_seq_length
        )
        vectors = graphs.by_length(self._vectors, packed, [self._size])
        return {VECTOR: tf.math.l2_normalize(vectors, -1)}
