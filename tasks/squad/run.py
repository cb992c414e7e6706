"""Windows, training, prediction, evaluation and export of run_squad.py."""

import dataclasses
import functools
import itertools
import json
from collections.abc import Callable, Iterator

from bert.common import storage
from bert.common.errors import UserError
from bert.common.progress import Progress, say
from bert.common.storage import to_json, write_whole
from bert.data.records import example_files
from bert.modeling import task_losses, task_models
from bert.modeling.formats import model_folder
from bert.modeling.formats.model_folder import ModelFolder
from bert.serving import graphs
from bert.tasks import (
    class_report,
    eval_report,
    finetuning_run,
    records,
    run_folder,
    training_run,
)
from bert.tasks.squad import answers as spans
from bert.tasks.squad import examples as squad
from bert.tasks.squad import export, windows
from bert.tasks.squad import metrics as scoring
from bert.tasks.squad.settings import OFFSETS, Settings

_THRESHOLD_FILE = "null_threshold.json"
_LOST_FILE = "lost_answers.json"


@dataclasses.dataclass
class Found:
    """Answers to the questions of a file.

    Attributes:
        best: id -> the best non-empty answer, or "" if there is none.
        odds: id -> odds of no answer.
        probabilities: id -> that of `best`; 0 if there is none.
    """

    best: dict[str, str] = dataclasses.field(default_factory=dict)
    odds: dict[str, float] = dataclasses.field(default_factory=dict)
    probabilities: dict[str, float] = dataclasses.field(default_factory=dict)

    def predictions(self, threshold: float) -> dict[str, str]:
        """id -> the answer, or "" if the odds exceed a threshold."""
        return {
            key: "" if self.odds[key] > threshold else text
            for key, text in self.best.items()
        }


class Squad:
    """Question answering, for `tasks.finetuning_run.run`.

    Args:
        settings: the settings of the script.
        model: the result of `finetuning.check`.
        folder: the folder of the run.
        datasets: flag of a file -> its questions.

    Attributes:
        tuning: `finetuning_run.FineTuningRun`.
        report: see `finetuning_run.FineTuningTask`.
    """

    def __init__(
        self,
        settings: Settings,
        model: ModelFolder,
        folder: run_folder.RunFolder,
        datasets: dict[str, squad.Dataset],
    ):
        self._settings, self._model = settings, model
        train = datasets.get("train_file")
        self._predict = datasets.get("predict_file")
        self._tuning_settings = tuning = settings.tuning
        self._folder = folder
        self._train_path, count, data = None, 0, ""
        if train:
            data = records.of_training(folder.shared, train.path)
            self._train_path, count = self._make_records(
                "train.tf_record",
                train,
                windows.TRAINING_SCHEMA,
                windows.WindowMaker.training_records,
            )
        self.tuning = finetuning_run.FineTuningRun(
            settings,
            folder,
            model,
            training_run.TrainingTask(
                lambda: task_models.build_span_model(
                    model.config, tuning.training.random_seed
                ),
                (task_losses.SPAN,),
                task_losses.span_weights,
                task_losses.span_sums,
                records=data,
            ),
            count,
        )
        self._threshold = settings.null_score_diff_threshold
        self._found = self._wrote = None
        self.report = {}

    def train(self) -> str:
        """Trains; returns the prefix of the checkpoint."""
        tuning, schema = self._tuning_settings, windows.TRAINING_SCHEMA
        examples = example_files.load(
            self._train_path, schema, tuning.max_seq_length
        )
        return self.tuning.train(examples, self._validate, "f1")

    def _validate(self) -> dict[str, float]:
        batch_size = self._tuning_settings.training.eval_batch_size
        return self._scores(self._find(batch_size))

    def evaluate(self) -> dict[str, float]:
        """The official metrics of --predict_file."""
        self.predict()
        self.report = self._report(self._found)
        return self._scores(self._found)

    def predict(self) -> list[str]:
        """Answers the questions, if needed and not done yet.

        Returns:
            the paths of the original's files, with --do_predict, and of the
            tuned threshold.
        """
        if self._wrote is None:
            self._wrote = self._answer()
        return self._wrote

    def _answer(self) -> list[str]:
        settings, tuning, wrote = self._settings, self._tuning_settings, []
        self._restore_threshold()
        if tuning.do_predict:
            self._found, wrote = self._write_answers()
        elif tuning.do_eval or settings.tune_null_threshold:
            self._found = self._find(tuning.training.eval_batch_size)
        if self._found and settings.tune_null_threshold:
            wrote.append(self._save_threshold())
        return wrote

    def _find(self, batch_size: int, nbest: dict | None = None) -> Found:
        """Answers the questions of --predict_file.

        Args:
            batch_size: number of windows in a batch.
            nbest: receives id -> n-best list, or None.
        """
        found = Found()
        for example, answers in self._answers(batch_size):
            best, key = answers.best, example.id
            found.best[key] = best.text if best else ""
            found.odds[key] = answers.null_odds
            found.probabilities[key] = best.probability if best else 0.0
            if nbest is not None:
                nbest[key] = spans.describe(answers.nbest)
        if self._settings.tune_null_threshold:
            self._threshold = scoring.tune_threshold(
                self._predict.examples, found.best, found.odds
            )
        return found

    def _scores(self, found: Found) -> dict[str, float]:
        """The official metrics, with the threshold of this run."""
        examples = self._predict.examples
        if not self._settings.version_2_with_negative:
            return scoring.scores_1(examples, found.best)
        scores = scoring.scores_2(
            examples, found.best, found.odds, self._threshold
        )
        return {**scores, "null_score_diff_threshold": self._threshold}

    def _report(self, found: Found) -> dict:
        """Reports on wrong answers, for `eval_report.write`."""
        predictions, examples = found.best, self._predict.examples
        references = {}
        if self._settings.version_2_with_negative:
            predictions = found.predictions(self._threshold)
            silent = sum(not x.answers for x in examples) / len(examples)
            # In percent, as the metrics.
            name = f"best_exact/{eval_report.MAJORITY}"
            references[name] = 100 * silent
        return {
            "task": "squad",
            "records": self._predict.path,
            "references": references,
            "worst_errors": class_report.worst(
                {
                    "text": [x.question, x.context],
                    "label": x.answers[0].text if x.answers else "",
                    "predicted": predictions[x.id],
                    "probability": found.probabilities[x.id],
                }
                for x in examples
                if predictions[x.id]
                and not any(
                    scoring.exact_score(answer.text, predictions[x.id])
                    for answer in x.answers
                )
            ),
        }

    def _write_answers(self) -> tuple[Found, list[str]]:
        """Answers all questions; writes the original's files."""
        path, nbest = self._folder.file, {}
        found = self._find(self._tuning_settings.predict_batch_size, nbest)
        version_2 = self._settings.version_2_with_negative
        predictions = found.best
        if version_2:
            predictions = found.predictions(self._threshold)
        wrote = [
            spans.write(path(spans.PREDICTIONS), predictions),
            spans.write(path(spans.NBEST), nbest),
        ]
        if version_2:
            odds = path(spans.NULL_ODDS)
            wrote.append(spans.write(odds, found.odds))
        silent = sum(not text for text in found.best.values())
        if silent:
            say(f"warning: {silent:,} questions have no valid answer span")
        return found, wrote

    def _restore_threshold(self) -> None:
        """Restores the threshold that was tuned for these weights."""
        settings, source = self._settings, self._weights_source()
        path = self._folder.file(_THRESHOLD_FILE)
        start = self._tuning_settings.training.model.init_checkpoint
        if start and not self.tuning.weights_step and not storage.exists(path):
            path = model_folder.beside(start, _THRESHOLD_FILE)
            source = model_folder.step_of(start), None
        is_given, exists = settings.is_threshold_given, storage.exists(path)
        if not settings.version_2_with_negative and (is_given or exists):
            say(
                "warning: without --version_2_with_negative the null threshold "
                "is not used: every question has an answer"
            )
            return
        if settings.tune_null_threshold or is_given or not exists:
            return
        try:
            with storage.open_text(path) as file:
                kept = json.load(file)
            threshold = float(kept["null_score_diff_threshold"])
            tuned_for = int(kept["global_step"]), kept.get("init_checkpoint")
        except (OSError, ValueError, KeyError, TypeError):
            raise UserError(
                "was not written by run_squad.py",
                path=path,
                fix="remove it, or pass --null_score_diff_threshold",
            ) from None
        if tuned_for == source:
            say(f"null threshold {threshold:.4f} restored from {path}")
            self._threshold = threshold
        else:
            say(f"ignoring {path}: tuned for other weights")

    def _weights_source(self) -> tuple[int, str | None]:
        """Step of the current weights, and --init_checkpoint at step 0."""
        step = self.tuning.weights_step
        model = self._tuning_settings.training.model
        return step, None if step else model.init_checkpoint

    def _save_threshold(self) -> str:
        """Writes the tuned threshold; returns the path."""
        path = self._folder.file(_THRESHOLD_FILE)
        step, init_checkpoint = self._weights_source()
        kept = {
            "null_score_diff_threshold": self._threshold,
            "predict_file": self._settings.predict_file,
            "global_step": step,
            "init_checkpoint": init_checkpoint,
        }
        write_whole(path, to_json(kept, indent=2) + "\n")
        say(f"null threshold tuned to {self._threshold:.4f}")
        return path

    def save_model(self, folder: str) -> None:
        """Writes the SavedModel."""
        settings = self._settings
        if settings.answer_text != OFFSETS:
            say("note: the export uses --answer_text=offsets")
        model = export.QuestionAnswering(
            self._model, settings, self._threshold, self.tuning.weights()
        )
        graphs.save(model, folder)

    def _make_records(
        self, name: str, dataset: squad.Dataset, schema, method: Callable
    ) -> tuple[str, int]:
        """Writes the windows of a file, unless they exist already.

        Returns:
            the path and the number of windows.
        """
        settings, tokenizer = self._settings, self._model.tokenizer
        examples = dataset.examples
        if schema is windows.PREDICTION_SCHEMA:  # whatever their answers are
            examples = [(x.id, x.question, x.context) for x in examples]

        def encoded() -> Iterator[dict]:
            maker = windows.WindowMaker(
                tokenizer,
                settings,
                Progress("windows", len(dataset.examples), "questions").update,
            )
            yield from method(maker, dataset.examples)
            if schema is windows.TRAINING_SCHEMA:
                self._report_lost(dataset, maker.lost)

        path = self._folder.file(name)
        return path, records.make(
            settings,
            path,
            dataset.path,
            examples,
            encoded,
            schema,
            tokenizer,
        )

    def _report_lost(
        self, dataset: squad.Dataset, lost: list[windows.LostAnswer]
    ) -> None:
        """Logs and lists the answers that training does not see as labelled."""
        path = self._folder.file(_LOST_FILE)
        listed = [x._asdict() for x in lost]
        write_whole(
            path, json.dumps(listed, indent=1, ensure_ascii=False) + "\n"
        )
        several = sum(len(x.answers) > 1 for x in dataset.examples)
        if several:
            say(
                f"warning: {several:,} questions have several answers; only "
                "the first is used for training"
            )
        by_reason = sorted(lost, key=lambda x: x.reason)
        for reason, some in itertools.groupby(by_reason, lambda x: x.reason):
            some = list(some)
            say(
                f"warning: {len(some):,} answers: {reason}; "
                f"first qa {some[0].id}; all in {path}"
            )

    def _answers(
        self, batch_size: int
    ) -> Iterator[tuple[squad.SquadExample, spans.Answers]]:
        """Yields each question with its answers; drops the logits."""
        settings, text_of = self._settings, self._text_of()
        for example, own in spans.by_question(
            self._predict.examples, self._windows(batch_size)
        ):
            yield (
                example,
                spans.extract(
                    own,
                    text_of(example.context, own),
                    settings.n_best_size,
                    settings.max_answer_length,
                    settings.version_2_with_negative,
                ),
            )

    @functools.cached_property
    def _prediction_records(self) -> tuple[str, int]:
        return self._make_records(
            "eval.tf_record",
            self._predict,
            windows.PREDICTION_SCHEMA,
            windows.WindowMaker.prediction_records,
        )

    def _windows(self, batch_size: int) -> Iterator[tuple]:
        """Yields records of windows with their start and end logits."""
        path, count = self._prediction_records
        found, again = itertools.tee(
            example_files.read(
                path,
                windows.PREDICTION_SCHEMA,
                self._tuning_settings.max_seq_length,
            )
        )
        outputs = self.tuning.predict(again, batch_size, "answered", count)
        for record, output in zip(found, outputs):
            yield record, output["start_logits"], output["end_logits"]

    def _text_of(self) -> Callable:
        settings, tokenizer = self._settings, self._model.tokenizer
        if settings.answer_text == OFFSETS:
            return spans.offsets_text
        return spans.OriginalText(
            tokenizer.tokens,
            tokenizer.exact.basic_tokenizer,
            say if settings.verbose_logging else None,
        ).text_of
