"""Multiple choice: examples -> sequences -> scores -> best choice.

No TensorFlow is imported.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bert.common.atomic import write_whole
from bert.common.formats.json_files import Json
from bert.data import feature_names
from bert.data.postprocessing import softmax
from bert.data.records.encoding import Feature
from bert.data.sequences import Encoded, join_pair, truncate_pair
from bert.data.tables import InputFile
from bert.data.text import vocabulary
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import CHOICES
from bert.tasks import evaluation
from bert.tasks.evaluation import CHANCE, MAJORITY
from bert.tasks.swag.examples import ChoiceExample, labels_of
from bert.tasks.swag.settings import KIND, Settings
from bert.tasks.task import Evaluation, Task, ignore

CONTEXT, CHOICE_TEXTS = "context", "choices"


class MultipleChoice(Task[Settings]):
    """Multiple choice: selects the best continuation of a text.

    Args:
        tokenizer: the model's tokenizer.
        max_length: int. Longest sequence in tokens; longer pairs are
            truncated as in the original.
        sequences: int. C, the choices of a training record. Default: 2.
    """

    name = "swag"
    head, num_outputs = CHOICES, 1
    loss = "ChoiceLoss"
    inputs = (CONTEXT, CHOICE_TEXTS)
    metric = "accuracy"

    def __init__(
        self, tokenizer: Tokenizer, max_length: int, sequences: int = 2
    ):
        self._tokenizer, self.max_length = tokenizer, max_length
        self.sequences = sequences
        self.schema = {
            feature_names.LABEL_IDS: Feature(),
            feature_names.CHOICE_WEIGHTS: Feature("float32", size=sequences),
        }
        self._cls, self._sep, self._unk = (
            tokenizer.vocab[x]
            for x in (vocabulary.CLS, vocabulary.SEP, vocabulary.UNK)
        )

    @classmethod
    def from_model(cls, model: ModelFolder) -> Self:
        """The task of a fine-tuned model."""
        length = (model.task_json or {}).get("max_seq_length", model.max_length)
        return cls(model.tokenizer, length)

    def to_json(self) -> dict:
        """Returns the content of `task.json`, which `from_model` reads."""
        return {"kind": KIND, "labels": [], "max_seq_length": self.max_length}

    def inputs_of(self, rows: list[ChoiceExample]) -> list[dict[str, Json]]:
        """Returns the texts of rows, as dicts for `encode`."""
        return [{CONTEXT: x.context, CHOICE_TEXTS: x.choices} for x in rows]

    def encode(self, examples: list[dict[str, Json]]) -> list[Encoded[NDArray]]:
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
                a, b = truncate_pair(context, choice, space)
                rows.append(join_pair(a, b, self._cls, self._sep))
            longest = max(map(len, tokens)) + len(context) + 3
            is_blank = np.array([not x.strip() for x in choices])
            is_truncated = longest > self.max_length
            encoded.append(Encoded(rows, longest, is_truncated, is_blank))
        return encoded

    def records(
        self,
        rows: list[ChoiceExample],
        report: Callable[[Encoded], None] = ignore,
    ) -> Iterator[dict]:
        """Yields a training record of each row.

        Missing choices are padded with the weight 0.
        """
        empty = join_pair([], [], self._cls, self._sep)
        for row, encoded in zip(rows, self.encode_rows(rows), strict=True):
            report(encoded)
            count = len(encoded.sequences)
            missing = self.sequences - count
            padded = encoded.sequences + [empty] * missing
            yield {
                feature_names.INPUT_IDS: [ids for ids, _ in padded],
                feature_names.SEGMENT_IDS: [x for _, x in padded],
                feature_names.LABEL_IDS: [row.label],
                feature_names.CHOICE_WEIGHTS: [1.0] * count + [0.0] * missing,
            }

    def combine(
        self, encoded: Encoded[NDArray], outputs: list[NDArray]
    ) -> NDArray:
        """Computes the probabilities of the choices, float64 [C]."""
        logits = np.concatenate(outputs).astype(np.float64)

        # With -inf, softmax would be NaN if all choices are blank.
        logits[encoded.details] = np.finfo(np.float32).min
        return softmax(logits)

    def decode(
        self, encoded: Sequence[Encoded], results: Sequence[NDArray]
    ) -> list[dict[str, Json]]:
        """Converts probabilities to predictions.

        Args:
            encoded: N examples.
            results: probabilities of the choices of each, float64 [C].

        Returns:
            a dict for each example: `best`, the index of the best choice, and
            `probabilities`, a list of floats.
        """
        return [
            {"best": int(x.argmax()), "probabilities": x.tolist()}
            for x in results
        ]

    def score(
        self,
        rows: list[ChoiceExample],
        encoded: Sequence[Encoded],
        results: Sequence[NDArray],
    ) -> Evaluation:
        """Scores the best choices; see `Task`."""
        labels = labels_of(rows)
        best = [int(x.argmax()) for x in results]
        given = np.array([x[i] for x, i in zip(results, labels)])
        tiny = np.finfo(np.float64).tiny  # avoids the logarithm of 0

        errors = (
            {
                "line": row.line,
                "text": [row.context, *row.choices],
                "label": row.choices[label],
                "predicted": row.choices[found],
                "probability": float(x[found]),
            }
            for row, label, found, x in zip(rows, labels, best, results)
            if found != label
        )

        return Evaluation(
            {
                "accuracy": float(np.equal(labels, best).mean()),
                "loss": -float(np.log(given + tiny).mean()),
            },
            {"worst_errors": evaluation.worst(errors)},
            best,
            [],
        )

    def baselines(
        self,
        rows: list[ChoiceExample],
        encoded: Sequence[Encoded],
        train: list[ChoiceExample],
        settings: Settings,
    ) -> dict[str, float]:
        """Scores random choices, and the most frequent one of training."""
        # Chance is a mean, as examples may have different numbers of choices.
        levels = [1 / len(x.choices) for x in rows]
        usual = np.bincount(labels_of(train)).argmax()
        return {
            f"accuracy/{CHANCE}": float(np.mean(levels)),
            f"accuracy/{MAJORITY}": float(
                np.mean(np.equal(labels_of(rows), usual))
            ),
            f"loss/{CHANCE}": -float(np.mean(np.log(levels))),
        }

    def write_predictions(
        self,
        folder: str,
        file: InputFile,
        encoded: Sequence[Encoded],
        results: Sequence[NDArray],
        settings: Settings,
    ) -> list[str]:
        """Writes `predictions.tsv`; returns its path.

        A line has the index of the best choice and the probabilities of all.
        """
        lines = []
        for prediction in self.decode(encoded, results):
            columns = (f"{x:.6f}" for x in prediction["probabilities"])
            lines.append("\t".join([str(prediction["best"]), *columns]) + "\n")
        path = os.path.join(folder, "predictions.tsv")
        write_whole(path, "".join(lines))
        return [path]
