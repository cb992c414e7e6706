"""Multiple choice: examples -> sequences -> scores -> best choice.

No TensorFlow is imported.
"""

from typing import Any

import numpy as np

from bert.data import features
from bert.data.postprocessing import softmax
from bert.data.records.encoding import Feature, Schema
from bert.data.sequences import Encoded, join_pair, truncate_pair
from bert.data.text import vocabulary
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import CHOICES
from bert.tasks.swag.examples import ChoiceExample

CONTEXT, CHOICE_TEXTS = "context", "choices"


def training_schema(choices: int) -> Schema:
    """Schema of `data.records.examples.Examples`.

    Args:
        choices: int. C, the choices of an example.
    """
    return {
        features.LABEL_IDS: Feature(),
        features.CHOICE_WEIGHTS: Feature("float32", size=choices),
    }


class MultipleChoice:
    """Multiple choice: selects the best continuation of a text.

    Args:
        tokenizer: the model's tokenizer.
        max_length: int. Longest sequence in tokens; longer pairs are
            truncated as in the original.

    Attributes:
        inputs: names of the fields of an example.
        num_outputs: number of scores of a sequence.
        num_truncated: number of choices truncated so far.
    """

    head, num_outputs = CHOICES, 1
    signatures = ("serving_default",)
    can_rank = False
    inputs, optional_inputs = (CONTEXT, CHOICE_TEXTS), ()

    def __init__(self, tokenizer: Tokenizer, max_length: int):
        self._tokenizer, self.max_length = tokenizer, max_length
        self.num_truncated = 0
        self._cls, self._sep, self._unk = (
            tokenizer.vocab[x]
            for x in (vocabulary.CLS, vocabulary.SEP, vocabulary.UNK)
        )

    @classmethod
    def from_model(cls, model: ModelFolder) -> "MultipleChoice":
        """The task of a fine-tuned model."""
        length = (model.task or {}).get("max_seq_length", model.max_length)
        return cls(model.tokenizer, length)

    def encode(self, examples: list[dict[str, Any]]) -> list[Encoded]:
        """Converts texts and their continuations to sequences.

        Args:
            examples: dicts of `context`, a text, and `choices`, a list of
                texts; blank choices get the probability 0.
        """
        encoded = []
        for example in examples:
            choices = example[CHOICE_TEXTS]
            context, *tokens = self._tokenizer.ids_of(
                [example[CONTEXT], *choices]
            )

            # The tokenizer may drop all characters of a choice.
            tokens = [x or [self._unk] for x in tokens]
            space, rows = self.max_length - 3, []
            for choice in tokens:
                self.num_truncated += len(context) + len(choice) > space
                a, b = truncate_pair(context, choice, space)
                rows.append(join_pair(a, b, self._cls, self._sep))
            longest = max(map(len, tokens)) + len(context) + 3
            is_blank = np.array([not x.strip() for x in choices])
            is_truncated = longest > self.max_length
            encoded.append(Encoded(rows, longest, is_truncated, is_blank))
        return encoded

    def features(self, example: ChoiceExample, choices: int) -> dict:
        """Features of an example for training.

        Args:
            example: an example with at most C choices.
            choices: int. C. Missing choices are padded with the weight 0.

        Returns:
            input_ids and segment_ids, C lists each; label_ids, 0 if the label
            is unknown; choice_weights, 1 for choices and 0 for padding.
        """
        (encoded,) = self.encode([example.texts()])
        count = len(encoded.rows)
        empty = join_pair([], [], self._cls, self._sep)
        rows = encoded.rows + [empty] * (choices - count)
        return {
            features.INPUT_IDS: [ids for ids, _ in rows],
            features.SEGMENT_IDS: [segments for _, segments in rows],
            features.LABEL_IDS: [example.label or 0],
            features.CHOICE_WEIGHTS: [1.0] * count + [0.0] * (choices - count),
        }

    def decode(
        self, encoded: list[Encoded], outputs: list[list[np.ndarray]]
    ) -> list[dict[str, Any]]:
        """Converts scores to predictions.

        Args:
            encoded: N examples.
            outputs: scores, float32 [1], of the choices of each.

        Returns:
            a dict for each example: `best`, the index of the best choice, and
            `probabilities`, a list of floats.
        """
        predictions = []
        for (*_, is_blank), scores in zip(encoded, outputs):
            logits = np.concatenate(scores).astype(np.float64)

            # With -inf, softmax would be NaN if all choices are blank.
            logits[is_blank] = np.finfo(np.float32).min
            probabilities = softmax(logits)
            best = int(probabilities.argmax())
            predictions.append(
                {"best": best, "probabilities": probabilities.tolist()}
            )
        return predictions
