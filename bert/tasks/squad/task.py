"""Question answering: question, context -> windows -> logits -> answer."""

import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bert.common.formats.json_files import Json
from bert.common.progress import log
from bert.data.sequences import Encoded, rows_of
from bert.data.tables import InputFile
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import SPANS
from bert.tasks import evaluation
from bert.tasks.evaluation import MAJORITY
from bert.tasks.squad import answers, metrics
from bert.tasks.squad.answers import Answers
from bert.tasks.squad.examples import SquadExample
from bert.tasks.squad.question_windows import TRAINING_SCHEMA, WindowMaker
from bert.tasks.squad.settings import ORIGINAL, Settings, describe, recorded
from bert.tasks.task import Evaluation, Task, ignore

QUESTION, CONTEXT = "question", "context"
_SHOWN = 10  # lost answers in a message


class QuestionAnswering(Task[Settings]):
    """Extractive question answering in a context of any length.

    Args:
        tokenizer: the model's tokenizer.
        settings: sizes of windows and answers, and the null threshold.

    Attributes:
        settings: the argument.
    """

    name = "squad"
    head, num_outputs = SPANS, 2  # start and end of a token
    loss = "SpanLoss"
    inputs = (QUESTION, CONTEXT)
    schema = TRAINING_SCHEMA
    metric = "f1"
    prefix = ""

    def __init__(self, tokenizer: Tokenizer, settings: Settings):
        self._tokenizer, self.settings = tokenizer, settings
        self.max_length = settings.max_seq_length
        self._text_of: Callable = answers.offsets_text
        if settings.answer_text == ORIGINAL:
            self._text_of = answers.OriginalText(
                tokenizer.tokens,
                tokenizer.exact.basic_tokenizer,
                log if settings.verbose_logging else None,
            ).text_of

    @classmethod
    def from_model(cls, model: ModelFolder) -> Self:
        """The task of a fine-tuned model, as recorded in its `task.json`."""
        longest = min(384, model.max_length)
        values = {"max_seq_length": longest} | recorded(model.task_json)
        return cls(model.tokenizer, dataclasses.replace(Settings(), **values))

    def to_json(self) -> dict:
        """Returns the content of `task.json`, which `from_model` reads."""
        return describe(self.settings)

    def inputs_of(self, rows: list[SquadExample]) -> list[dict[str, str]]:
        """Returns questions and contexts, as dicts for `encode`."""
        return [{QUESTION: x.question, CONTEXT: x.context} for x in rows]

    def encode(self, examples: list[dict[str, str]]) -> list[Encoded]:
        """Splits questions and contexts into windows.

        Args:
            examples: dicts of `question` and `context`.
        """
        questions = [
            SquadExample(str(i), x[QUESTION], x[CONTEXT], (), True)
            for i, x in enumerate(examples)
        ]
        maker = WindowMaker(self._tokenizer, self.settings)
        windows = maker.prediction_windows(questions)
        return [
            Encoded(rows_of(records), details=(example.context, records))
            for example, records in zip(questions, windows, strict=True)
        ]

    def records(
        self,
        rows: list[SquadExample],
        report: Callable[[Encoded], None] = ignore,
    ) -> Iterator[dict]:
        """Yields the windows of labelled questions, in the original's order.

        Warns about labelled answers that are skipped or changed.
        """
        empty = Encoded([])
        maker = WindowMaker(
            self._tokenizer, self.settings, lambda done: report(empty)
        )
        yield from maker.training_records(rows)

        # Log.
        several = sum(len(x.answers) > 1 for x in rows)
        if several:
            log(
                f"warning: {several:,} questions have several answers; only "
                "the first is used for training"
            )
        for reason, ids in sorted(maker.lost.items()):
            more = ", ..." if len(ids) > _SHOWN else ""
            some = f"{', '.join(ids[:_SHOWN])}{more}"
            log(f"warning: {len(ids):,} answers: {reason}; qa {some}")

    def combine(self, encoded: Encoded, outputs: list[NDArray]) -> Answers:
        """Finds the answers to a question.

        Args:
            encoded: the question.
            outputs: logits, float32 [S, 2], of its windows. If they are not
                finite, the probabilities are NaN.
        """
        # Or else the best of the other windows would be the answer.
        if not all(np.isfinite(x).all() for x in outputs):
            outputs = [np.full_like(x, np.nan) for x in outputs]
        context, records = encoded.details
        settings = self.settings
        windows = [
            answers.WindowLogits.of_record(record, x[:, 0], x[:, 1])
            for record, x in zip(records, outputs)
        ]
        return answers.extract(
            windows,
            self._text_of(context, windows),
            settings.n_best_size,
            settings.max_answer_length,
            settings.version_2_with_negative,
        )

    def decode(
        self, encoded: Sequence[Encoded], results: Sequence[Answers]
    ) -> list[dict[str, Json]]:
        """Converts answers to predictions.

        Args:
            encoded: N examples.
            results: the answers to each.

        Returns:
            a dict for each example. `answer` is a part of the context, or "".
            `probability` is relative to the n-best list. `start` and `end`
            are characters of the context. `null_odds` is the score of no
            answer minus the score of the best answer.
        """
        predictions = []
        for found in results:
            best = found.best
            if best is None or self._is_null(found):
                best = next(x for x in found.nbest if not x.text)
            predictions.append(
                {
                    "answer": best.text,
                    "probability": best.probability,
                    "start": best.start,
                    "end": best.limit,
                    "null_odds": found.null_odds,
                }
            )
        return predictions

    def _is_null(self, found: Answers) -> bool:
        """Whether the odds of no answer exceed the threshold."""
        threshold = self.settings.null_score_diff_threshold
        is_2 = self.settings.version_2_with_negative
        return is_2 and found.null_odds > threshold

    def score(
        self,
        rows: list[SquadExample],
        encoded: Sequence[Encoded],
        results: Sequence[Answers],
    ) -> Evaluation:
        """Computes the official metrics, at the null threshold."""
        predicted = [x["answer"] for x in self.decode(encoded, results)]
        best, odds = _best(rows, results)
        settings = self.settings
        if settings.version_2_with_negative:
            threshold = settings.null_score_diff_threshold
            found = metrics.scores_2(rows, best, odds, threshold)
            found["null_score_diff_threshold"] = threshold
        else:
            found = metrics.scores_1(rows, best)

        # Worst errors, without questions that got an empty answer.
        errors = (
            {
                "id": row.id,
                "text": [row.question, row.context],
                "label": row.answers[0].text if row.answers else "",
                "predicted": text,
                "probability": x.best.probability,
            }
            for row, text, x in zip(rows, predicted, results)
            if text
            and x.best
            and not any(
                metrics.exact_score(answer.text, text) for answer in row.answers
            )
        )
        report = {"worst_errors": evaluation.worst(errors)}
        return Evaluation(found, report, predicted, [])

    def fit_decision(
        self,
        rows: list[SquadExample],
        encoded: Sequence[Encoded],
        results: Sequence[Answers],
        settings: Settings,
    ) -> tuple[Self, Evaluation]:
        """Tunes the null threshold for the best F1."""
        threshold = metrics.tune_threshold(rows, *_best(rows, results))
        log(f"null threshold tuned to {threshold:.4f}")
        task = type(self)(
            self._tokenizer,
            dataclasses.replace(
                self.settings, null_score_diff_threshold=threshold
            ),
        )
        return task, task.score(rows, encoded, results)

    def baselines(
        self,
        rows: list[SquadExample],
        encoded: Sequence[Encoded],
        train: list[SquadExample],
        settings: Settings,
    ) -> dict[str, float]:
        """Scores no answer to any question, in percent like the metrics."""
        if not self.settings.version_2_with_negative:
            return {}
        silent = sum(not x.answers for x in rows) / len(rows)
        return {f"best_exact/{MAJORITY}": 100 * silent}

    def write_predictions(
        self,
        folder: str,
        file: InputFile,
        encoded: Sequence[Encoded],
        results: Sequence[Answers],
        settings: Settings,
    ) -> list[str]:
        """Writes the original's files; returns their paths."""
        predicted = [x["answer"] for x in self.decode(encoded, results)]
        ids = [row.id for row in file.rows]
        best, odds = _best(file.rows, results)
        contents = {
            answers.PREDICTIONS: dict(zip(ids, predicted)),
            answers.NBEST: {
                key: answers.describe(x.nbest) for key, x in zip(ids, results)
            },
        }
        if self.settings.version_2_with_negative:
            contents[answers.NULL_ODDS] = odds

        # Without a valid span the answer is empty, too.
        silent = sum(not text for text in best.values())
        if silent:
            log(f"warning: {silent:,} questions have no valid answer span")
        return [
            answers.write(os.path.join(folder, name), content)
            for name, content in contents.items()
        ]


def _best(
    rows: list[SquadExample], results: Sequence[Answers]
) -> tuple[dict[str, str], dict[str, float]]:
    """The best answer that is not empty, and the odds of no answer, by id."""
    best, odds = {}, {}
    for row, found in zip(rows, results, strict=True):
        best[row.id] = found.best.text if found.best else ""
        odds[row.id] = found.null_odds
    return best, odds
