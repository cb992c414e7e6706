"""Text classification: examples -> sequences -> logits -> predictions.

No TensorFlow is imported.
"""

from typing import Any

import numpy as np

from bert.data import postprocessing
from bert.data.postprocessing import CLASSES, REGRESSION, Labels
from bert.data.sequences import FIRST_TOKENS, Encoded, LongTexts
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import CLASSIFIER

TEXT, TEXT_B = "text", "text_b"
RELEVANT = "1"  # label of a text that is relevant to a query


class TextClassification:
    """Classification of texts or of pairs of texts.

    Args:
        tokenizer: the model's tokenizer.
        labels: kind and names of the labels, with their post-processing.
        max_length: int. Longest sequence in tokens.
        long_texts: truncation or windows of longer texts.
        has_pairs: bool or None. Whether an example has a second text; None
            if it is optional.

    Attributes:
        inputs: names of the fields of an example.
        num_outputs: C, the number of logits.
    """

    head = CLASSIFIER
    signatures = ("serving_default",)

    def __init__(
        self,
        tokenizer: Tokenizer,
        labels: Labels,
        max_length: int,
        long_texts: LongTexts = FIRST_TOKENS,
        has_pairs: bool | None = False,
    ):
        self._tokenizer, self._labels = tokenizer, labels
        self.max_length, self._long_texts = max_length, long_texts
        self.inputs = (TEXT, TEXT_B) if has_pairs else (TEXT,)
        self.optional_inputs = (TEXT_B,) if has_pairs is None else ()
        self.num_outputs = labels.size
        is_score = labels.kind == REGRESSION or RELEVANT in labels.names
        self.can_rank = has_pairs is not False and is_score

    @classmethod
    def from_model(cls, model: ModelFolder) -> "TextClassification":
        """The task of a fine-tuned model, as recorded in its `task.json`."""
        task = model.task
        return cls(
            model.tokenizer,
            Labels.of_task(task),
            task.get("max_seq_length", model.max_length),
            LongTexts.of_task(task),
            # A folder of transformers does not record it.
            task.get("pairs", None if model.format == "huggingface" else False),
        )

    def encode(self, examples: list[dict[str, str]]) -> list[Encoded]:
        """Converts texts to sequences.

        Args:
            examples: dicts of `text` and, for pairs, `text_b`.
        """
        return self._tokenizer.encode_texts(
            [x[TEXT] for x in examples],
            [x.get(TEXT_B, "") for x in examples],
            self.max_length,
            self._long_texts,
        )

    def decode(
        self, encoded: list[Encoded], outputs: list[list[np.ndarray]]
    ) -> list[dict[str, Any]]:
        """Converts logits to predictions.

        Args:
            encoded: N examples.
            outputs: logits, float32 [C], of the sequences of each.

        Returns:
            a dict for each example. For classes: `label`, a name, or None if
            the prediction is rejected, and `probabilities`, name -> float.
            With several labels, `label` is a list of names. For regression:
            `value`, a float.
        """
        flat = [x for sequences in outputs for x in sequences]
        logits = np.reshape(flat, (-1, self.num_outputs)).astype(np.float32)
        counts = [len(x) for x in outputs]
        return self.predictions(self._long_texts.pooled(logits, counts))

    def predictions(self, logits: np.ndarray) -> list[dict[str, Any]]:
        """Converts pooled logits, float32 [N, C]; see `decode`."""
        labels = self._labels
        kind, names, decision = labels.kind, labels.names, labels.decision
        if kind == REGRESSION:
            return [{"value": x} for x in logits[:, 0].tolist()]

        answers = postprocessing.predictions(logits, kind, decision)
        if kind == CLASSES:
            unknown = postprocessing.is_rejected(logits, decision)
            chosen = [
                None if is_unknown else names[i]
                for i, is_unknown in zip(answers, unknown)
            ]
        else:
            chosen = [
                [name for name, x in zip(names, row) if x] for row in answers
            ]
        probabilities = postprocessing.probabilities(logits, kind, decision)
        return [
            {"label": label, "probabilities": dict(zip(names, row))}
            for label, row in zip(chosen, probabilities.tolist())
        ]
