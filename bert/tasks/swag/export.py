"""SavedModel that chooses a continuation, with its tokenizer.

    context, choices -> ids -> network -> best choice, probabilities

It needs TensorFlow and TensorFlow Text, and no code of this project.
"""

import numpy as np
import tensorflow as tf

from bert.modeling import task_models
from bert.modeling.formats.model_folder import ModelFolder
from bert.serving import graphs
from bert.tasks.finetuning_settings import FineTuning

CONTEXT, CHOICES = "context", "choices"
BEST, PROBABILITIES = "best", "probabilities"


class Chooser(tf.train.Checkpoint):
    """Chooses the best continuation of texts, as a SavedModel.

    Args:
        source: sizes of the network, and tokenizer.
        shared: maximum S; longer pairs are truncated.
        weights: original name -> array, for all variables of the network.

    Attributes:
        serve: context, string [B], and choices, string [B, C] -> answers;
            empty strings pad examples with fewer than C choices.
        vocab_file: the vocabulary, as an asset.
        do_lower_case, strip_accents: casing of the tokenizer.

    Answers are a dict: best, int64 [B], index of the best choice;
    probabilities, float32 [B, C], 0 for padding.
    """

    def __init__(
        self,
        source: ModelFolder,
        shared: FineTuning,
        weights: dict[str, np.ndarray],
    ):
        super().__init__()
        self._max_seq_length = shared.max_seq_length
        self._model, self._tokenizer = graphs.equip(
            self,
            task_models.build_choice_model(source.config),
            weights,
            source.tokenizer,
        )
        self.serve = graphs.signature(
            self._answer,
            {
                CONTEXT: tf.TensorSpec([None], tf.string),
                CHOICES: tf.TensorSpec([None, None], tf.string),
            },
        )

    def _logits(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Logits of sequences, each as the only choice: float32 [b, 1]."""
        alone = {name: x[:, tf.newaxis] for name, x in inputs.items()}
        return self._model.value(alone, training=False)["logits"]

    def _answer(self, context: tf.Tensor, choices: tf.Tensor) -> dict:
        tokenizer, shape = self._tokenizer, tf.shape(choices)

        # All pairs in one batch: those of context 0, those of context 1, ...
        a = tokenizer.tokenize(context).merge_dims(1, 2)
        a = tf.gather(a, tf.repeat(tf.range(shape[0]), shape[1]))
        b = tokenizer.tokenize(tf.reshape(choices, [-1])).merge_dims(1, 2)
        packed = graphs.pack(tokenizer, [a, b], self._max_seq_length)
        logits = graphs.by_length(self._logits, packed, [1])
        logits = tf.reshape(logits, shape)

        # Not -inf: where all choices are missing, softmax would give NaN.
        missing = tf.strings.length(tf.strings.strip(choices)) == 0
        logits = tf.where(missing, logits.dtype.min, logits)
        return {
            BEST: tf.argmax(logits, -1),
            PROBABILITIES: tf.nn.softmax(logits),
        }
