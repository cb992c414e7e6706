"""Question answering: question, context -> windows -> logits -> answer.

Imports TensorFlow, as tokenization with character offsets needs it.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from bert.data import features
from bert.data.sequences import Encoded, rows_of
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import SPANS
from bert.tasks.squad import answers
from bert.tasks.squad.examples import SquadExample
from bert.tasks.squad.settings import Settings, recorded
from bert.tasks.squad.windows import WindowMaker

QUESTION, CONTEXT = "question", "context"


class QuestionAnswering:
    """Extractive question answering in a context of any length.

    Args:
        tokenizer: the model's tokenizer.
        settings: sizes of windows and answers, and the null threshold.
        text_of: function that makes a function from candidates to their text.
            Default: `answers.offsets_text`.

    Attributes:
        inputs: names of the fields of an example.
        num_outputs: number of logits of a token: start and end.
    """

    head, num_outputs = SPANS, 2
    signatures = ("serving_default",)
    can_rank = False
    inputs, optional_inputs = (QUESTION, CONTEXT), ()

    def __init__(
        self,
        tokenizer: Tokenizer,
        settings: Settings,
        text_of: Callable = answers.offsets_text,
    ):
        self._tokenizer, self._settings = tokenizer, settings
        self._text_of = text_of
        self.max_length = settings.max_seq_length

    @classmethod
    def from_model(cls, model: ModelFolder) -> "QuestionAnswering":
        """The task of a fine-tuned model, as recorded in its `task.json`."""
        longest = min(384, model.max_length)
        values = {"max_seq_length": longest} | recorded(model.task)
        return cls(model.tokenizer, dataclasses.replace(Settings(), **values))

    def encode(self, examples: list[dict[str, str]]) -> list[Encoded]:
        """Splits questions and contexts into windows.

        Args:
            examples: dicts of `question` and `context`.
        """
        return self.encode_examples(
            [
                SquadExample(str(i), x[QUESTION], x[CONTEXT], (), True)
                for i, x in enumerate(examples)
            ]
        )

    def encode_examples(
        self,
        examples: list[SquadExample],
        report: Callable[[int], None] = lambda done: None,
    ) -> list[Encoded]:
        """Splits the questions of a file into windows; see `encode`.

        Args:
            examples: the questions.
            report: function, called with the number of questions done.
        """
        windows: list[list[dict]] = [[] for _ in examples]
        maker = WindowMaker(self._tokenizer, self._settings, report)
        for record in maker.prediction_records(examples):
            windows[record[features.EXAMPLE_INDEX][0]].append(record)
        return [
            Encoded(rows_of(records), details=(example.context, records))
            for example, records in zip(examples, windows)
        ]

    def decode(
        self, encoded: list[Encoded], outputs: list[list[np.ndarray]]
    ) -> list[dict[str, Any]]:
        """Converts logits to answers.

        Args:
            encoded: N examples.
            outputs: logits, float32 [S, 2], of the windows of each.

        Returns:
            a dict for each example. `answer` is a part of the context, or "".
            `probability` is relative to the n-best list. `start` and `end`
            are characters of the context. `null_odds` is the score of no
            answer minus the score of the best answer.
        """
        predictions = []
        for (*_, (context, records)), logits in zip(encoded, outputs):
            found = self.find(context, records, logits)
            predictions.append(self._prediction(found))
        return predictions

    def find(
        self, context: str, records: list[dict], logits: list[np.ndarray]
    ) -> answers.Answers:
        """Finds the answers to a question.

        Args:
            context: the context.
            records: its windows, see `WindowMaker.prediction_records`.
            logits: float32 [S, 2], for each window.
        """
        settings = self._settings
        windows = [
            answers.WindowLogits.of_record(record, x[:, 0], x[:, 1])
            for record, x in zip(records, logits)
        ]
        return answers.extract(
            windows,
            self._text_of(context, windows),
            settings.n_best_size,
            settings.max_answer_length,
            settings.version_2_with_negative,
        )

    def _prediction(self, found: answers.Answers) -> dict[str, Any]:
        settings, best = self._settings, found.best
        threshold = settings.null_score_diff_threshold
        is_null = settings.version_2_with_negative and (
            found.null_odds > threshold
        )
        if is_null or best is None:
            best = next(x for x in found.nbest if not x.text)
        return {
            "answer": best.text,
            "probability": best.probability,
            "start": best.start,
            "end": best.limit,
            "null_odds": found.null_odds,
        }
