"""The task of run_squad.py: extractive question answering."""

import dataclasses
import functools
from collections.abc import Callable, Iterable
from itertools import islice

import numpy as np

from bert.common import storage
from bert.common.progress import Progress, log
from bert.data.records.examples import Examples
from bert.data.sequences import Encoded, Row
from bert.modeling import task_losses, task_models
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks import class_report, eval_report, finetuning
from bert.tasks.run_folder import RunFolder
from bert.tasks.squad import answers as spans
from bert.tasks.squad import examples as squad
from bert.tasks.squad import metrics as scoring
from bert.tasks.squad import null_threshold, windows
from bert.tasks.squad.pipeline import QuestionAnswering
from bert.tasks.squad.settings import OFFSETS, Settings, describe
from bert.training.task import Task
from bert.training.trainer import Trainer

_SHOWN = 10  # lost answers in a message


@dataclasses.dataclass
class Predictions:
    """Answers to the questions of a file.

    Attributes:
        best: id -> the best non-empty answer, or "" without one.
        odds: id -> odds of no answer.
        probabilities: id -> probability of `best`, or 0 without one.
        nbest: id -> the original's n-best list, with --do_predict.
        threshold: odds above which a question has no answer.
    """

    best: dict[str, str] = dataclasses.field(default_factory=dict)
    odds: dict[str, float] = dataclasses.field(default_factory=dict)
    probabilities: dict[str, float] = dataclasses.field(default_factory=dict)
    nbest: dict[str, list] = dataclasses.field(default_factory=dict)
    threshold: float = 0.0

    @property
    def texts(self) -> dict[str, str]:
        """id -> the answer, or "" if the odds exceed the threshold."""
        return {
            key: "" if self.odds[key] > self.threshold else text
            for key, text in self.best.items()
        }


def make_task(
    folder: RunFolder,
    datasets: dict[str, squad.Dataset],
) -> Task:
    """Encodes the questions, and makes the task for training.

    Args:
        folder: the folder of the run, with settings and initial model.
        datasets: flag of a file -> its questions.

    Raises:
        UserError: there are too few examples for one step, or the folder
            holds a run with other training data.
    """
    settings, model = folder.settings, folder.model
    dataset = datasets.get("predict_file")

    encoded, records = None, ""
    if train := datasets.get("train_file"):
        records = folder.identify(storage.hash_file(train.path))
        progress = Progress("windows", len(train.examples), "questions")
        maker = windows.WindowMaker(model.tokenizer, settings, progress.update)
        encoded = Examples(
            maker.training_records(train.examples), windows.TRAINING_SCHEMA
        )
        report_lost(train, maker.lost)

    answering = QuestionAnswering(
        model.tokenizer, settings, _text_of(settings, model)
    )

    @functools.cache  # validations use it, too
    def windows_of_questions() -> list[Encoded]:
        progress = Progress("windows", len(dataset.examples), "questions")
        return answering.encode_examples(dataset.examples, progress.update)

    def answer(
        trainer: Trainer, batch_size: int, threshold: float
    ) -> Predictions:
        encoded = windows_of_questions()
        rows = [row for x in encoded for row in x.details[1]]
        outputs = trainer.predict(rows, batch_size, "answered", len(rows))
        logits = (
            np.stack([x["start_logits"], x["end_logits"]], -1) for x in outputs
        )
        return predict(answering, settings, dataset, encoded, logits, threshold)

    @functools.cache  # evaluation, prediction and export share it
    def predictions_of(trainer: Trainer) -> tuple[Predictions, list[str]]:
        """The predictions of the final weights, and the written paths."""
        threshold = null_threshold.restore(
            settings, folder, trainer.weights_step
        )
        predictions, wrote = Predictions(threshold=threshold), []
        tunes = settings.tune_null_threshold
        if settings.do_predict:
            size = settings.predict_batch_size
            predictions = answer(trainer, size, threshold)
            wrote = _write(predictions, settings, folder)
        elif settings.do_eval or tunes:
            size = settings.eval_batch_size
            predictions = answer(trainer, size, threshold)

        # Save the threshold for later predictions.
        if tunes:
            wrote.append(
                null_threshold.save(
                    settings,
                    folder,
                    trainer.weights_step,
                    predictions.threshold,
                )
            )
        return predictions, wrote

    def validate(trainer: Trainer) -> dict[str, float]:
        size = settings.eval_batch_size
        threshold = settings.null_score_diff_threshold
        return score(settings, dataset, answer(trainer, size, threshold))

    def evaluate(trainer: Trainer) -> tuple[dict[str, float], dict]:
        predictions, _ = predictions_of(trainer)
        return (
            score(settings, dataset, predictions),
            report(settings, dataset, predictions),
        )

    def describe_tuned(trainer: Trainer) -> dict:
        """The `task.json` of an export, with the threshold of the run."""
        if settings.answer_text != OFFSETS:
            log("note: the export uses --answer_text=offsets")
        threshold = predictions_of(trainer)[0].threshold
        return describe(settings) | {"null_score_diff_threshold": threshold}

    def sample() -> list[Row]:
        """Tokenized texts of training, else of evaluation."""
        questions = datasets.get("train_file") or dataset
        encoded = answering.encode_examples(questions.examples)
        return [row for x in encoded for row in x.rows]

    return Task(
        "squad",
        lambda: task_models.build_span_model(
            model.config, settings.random_seed
        ),
        (task_losses.SPAN,),
        task_losses.span_weights,
        task_losses.span_sums,
        finetuning.schedule(settings, len(encoded or ())),
        records=finetuning.describe(encoded, records),
        metric="f1",
        examples=encoded,
        labels=describe(settings),
        validate=validate,
        evaluate=evaluate,
        predict=lambda trainer: predictions_of(trainer)[1],
        describe=describe_tuned,
        sample=sample,
    )


def score(
    settings: Settings, dataset: squad.Dataset, predictions: Predictions
) -> dict[str, float]:
    """Computes the official metrics at the threshold of the predictions."""
    if not settings.version_2_with_negative:
        return scoring.scores_1(dataset.examples, predictions.best)
    threshold = predictions.threshold
    scores = scoring.scores_2(
        dataset.examples, predictions.best, predictions.odds, threshold
    )
    return {**scores, "null_score_diff_threshold": threshold}


def report(
    settings: Settings, dataset: squad.Dataset, predictions: Predictions
) -> dict:
    """Reports on wrong answers, for `eval_report.write`."""
    texts, examples, baselines = predictions.best, dataset.examples, {}
    if settings.version_2_with_negative:
        texts = predictions.texts
        silent = sum(not x.answers for x in examples) / len(examples)
        # In percent, like the metrics.
        baselines[f"best_exact/{eval_report.MAJORITY}"] = 100 * silent

    # Worst errors, without questions that got an empty answer.
    errors = (
        {
            "id": x.id,
            "text": [x.question, x.context],
            "label": x.answers[0].text if x.answers else "",
            "predicted": texts[x.id],
            "probability": predictions.probabilities[x.id],
        }
        for x in examples
        if texts[x.id]
        and not any(
            scoring.exact_score(answer.text, texts[x.id])
            for answer in x.answers
        )
    )
    return {
        "task": "squad",
        "records": dataset.path,
        "references": baselines,
        "worst_errors": class_report.worst(errors),
    }


def predict(
    answering: QuestionAnswering,
    settings: Settings,
    dataset: squad.Dataset,
    encoded: list[Encoded],
    logits: Iterable[np.ndarray],
    threshold: float,
) -> Predictions:
    """Finds the answers; tunes the threshold with --tune_null_threshold.

    Args:
        answering: converts logits to answers.
        settings: the settings of the script.
        dataset: the questions.
        encoded: the windows of each question, encoded by `answering`.
        logits: float32 [S, 2] for each window, in order.
        threshold: float. Odds above which the answer is empty.
    """
    predictions, rest = Predictions(threshold=threshold), iter(logits)
    for example, x in zip(dataset.examples, encoded):
        context, records = x.details
        found = answering.find(context, records, [*islice(rest, len(records))])
        best, key = found.best, example.id
        predictions.best[key] = best.text if best else ""
        predictions.odds[key] = found.null_odds
        predictions.probabilities[key] = best.probability if best else 0.0

        # The lists are large; only the prediction file needs them.
        if settings.do_predict:
            predictions.nbest[key] = spans.describe(found.nbest)

    if settings.tune_null_threshold:
        predictions.threshold = scoring.tune_threshold(
            dataset.examples, predictions.best, predictions.odds
        )
    return predictions


def _write(
    predictions: Predictions, settings: Settings, folder: RunFolder
) -> list[str]:
    """Writes the original's files; returns their paths."""
    version_2 = settings.version_2_with_negative
    texts = predictions.texts if version_2 else predictions.best
    wrote = [
        spans.write(folder.file(spans.PREDICTIONS), texts),
        spans.write(folder.file(spans.NBEST), predictions.nbest),
    ]
    if version_2:
        path = folder.file(spans.NULL_ODDS)
        wrote.append(spans.write(path, predictions.odds))

    # Without a valid span the answer is empty, too.
    silent = sum(not text for text in predictions.best.values())
    if silent:
        log(f"warning: {silent:,} questions have no valid answer span")
    return wrote


def report_lost(dataset: squad.Dataset, lost: dict[str, list[str]]) -> None:
    """Logs labelled answers that are skipped or changed in training."""
    several = sum(len(x.answers) > 1 for x in dataset.examples)
    if several:
        log(
            f"warning: {several:,} questions have several answers; only "
            "the first is used for training"
        )
    for reason, ids in sorted(lost.items()):
        some = (
            f"{', '.join(ids[:_SHOWN])}{', ...' if len(ids) > _SHOWN else ''}"
        )
        log(f"warning: {len(ids):,} answers: {reason}; qa {some}")


def _text_of(settings: Settings, model: ModelFolder) -> Callable:
    if settings.answer_text == OFFSETS:
        return spans.offsets_text
    tokenizer = model.tokenizer
    return spans.OriginalText(
        tokenizer.tokens,
        tokenizer.exact.basic_tokenizer,
        log if settings.verbose_logging else None,
    ).text_of
