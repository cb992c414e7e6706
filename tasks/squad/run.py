"""A run of run_squad.py: windows, training, answers, scores, the export.

It is wiring: files -> records -> `finetuning` -> logits -> answers -> files.
"""

import contextlib
import dataclasses
import itertools
import json
import os
from collections.abc import Callable, Iterator

from absl import flags

from common.durable import sync_and_hash, to_json, write_whole
from common.errors import UserError
from common.progress import Progress, say
from data.records import example_files
from modeling import checkpoints, losses, task_models
from serving import export_folder
from tasks import finetuning, output_dir
from tasks.squad import answer_files, original_text, spans, windows
from tasks.squad import examples as squad
from tasks.squad import metrics as scoring

_RECORDS_VERSION = 1  # of how windows are cut
_THRESHOLD_FILE = "null_threshold.json"
_LOST_FILE = "lost_answers.json"


@dataclasses.dataclass
class Found:
    """Answers to the questions of a file.

    Attributes:
        best: id -> the best answer that is one, or "".
        odds: id -> odds of no answer.
    """

    best: dict[str, str] = dataclasses.field(default_factory=dict)
    odds: dict[str, float] = dataclasses.field(default_factory=dict)

    def predictions(self, threshold: float) -> dict[str, str]:
        """id -> the answer, "" where the odds are above a threshold."""
        return {
            key: "" if self.odds[key] > threshold else text
            for key, text in self.best.items()
        }


class Records:
    """The windows of the files, made once and kept beside the run.

    Args:
        values: the flags.
    """

    def __init__(self, values: flags.FlagValues):
        self._values = values

    def of_training(self, dataset: squad.Dataset) -> tuple[str, int]:
        """Path and number of windows to train on."""
        return self._made(
            "train.tf_record",
            dataset,
            windows.TRAINING_SCHEMA,
            windows.Maker.training_rows,
        )

    def of_prediction(self, dataset: squad.Dataset) -> tuple[str, int]:
        """Path and number of windows to answer."""
        return self._made(
            "eval.tf_record",
            dataset,
            windows.PREDICTION_SCHEMA,
            windows.Maker.prediction_rows,
        )

    def _made(self, name, dataset, schema, rows: Callable) -> tuple[str, int]:
        from data.text import text_ops

        values = self._values
        path = os.path.join(values.output_dir, name)
        settings = self._settings(dataset.path)
        count = example_files.current_count(path, settings)
        if count is not None:
            say(f"{count:,} windows of {dataset.path} are in {path}")
            return path, count
        total = len(dataset.examples)
        maker = windows.Maker(
            text_ops.GraphTokenizer(
                values.vocab_file, values.do_lower_case, values.strip_accents
            ),
            windows.Settings(
                values.max_seq_length,
                values.doc_stride,
                values.max_query_length,
            ),
            Progress("windows", total, "questions").update,
        )
        count = example_files.write(
            path,
            rows(maker, dataset.examples),
            schema,
            values.max_seq_length,
            settings,
        )
        say(f"{total:,} questions of {dataset.path}, {count:,} windows")
        if schema is windows.TRAINING_SCHEMA:
            self._tell_lost(dataset, maker.lost)
        return path, count

    def _settings(self, path: str) -> dict:
        """What the windows depend on."""
        values = self._values
        names = (
            "do_lower_case",
            "strip_accents",
            "max_seq_length",
            "doc_stride",
            "max_query_length",
        )
        return {
            "version": _RECORDS_VERSION,
            "file": sync_and_hash(path),
            "vocabulary": sync_and_hash(values.vocab_file),
            **{name: values[name].value for name in names},
        }

    def _tell_lost(
        self, dataset: squad.Dataset, lost: list[windows.Lost]
    ) -> None:
        """Counts and lists the answers that training does not see."""
        path = os.path.join(self._values.output_dir, _LOST_FILE)
        listed = [x._asdict() for x in lost]
        write_whole(
            path, json.dumps(listed, indent=1, ensure_ascii=False) + "\n"
        )
        several = sum(len(x.answers) > 1 for x in dataset.examples)
        if several:
            say(
                f"warning: {several:,} questions have several answers; the "
                "first is trained on"
            )
        by_reason = sorted(lost, key=lambda x: x.reason)
        for reason, some in itertools.groupby(by_reason, lambda x: x.reason):
            some = list(some)
            say(
                f"warning: {len(some):,} answers: {reason}; "
                f"first qa {some[0].id}; all in {path}"
            )


class Answering:
    """A run: the network, its windows, and its answers.

    Args:
        job: what is asked for, a `run_squad.Job`.

    Attributes:
        tuning: `finetuning.FineTuning`.
    """

    def __init__(self, job):
        self._values, self._job, values = job.flags, job, job.flags
        begun = os.path.join(values.output_dir, "checkpoint")
        if values.init_checkpoint and not os.path.exists(begun):
            checkpoints.resolve(values.init_checkpoint)  # before any work
        output_dir.prepare(values.output_dir, job.setup.config, None)
        self._records = Records(values)
        self._train_path, num_rows = None, 0
        if job.train:
            self._train_path, num_rows = self._records.of_training(job.train)
        self.tuning = finetuning.FineTuning(
            values,
            job.setup,
            finetuning.Task(
                lambda: task_models.build_span_model(
                    job.setup.config, values.random_seed
                ),
                (losses.SPAN,),
                losses.span_weights,
                losses.span_sums,
                num_rows,
            ),
        )
        self._threshold, self._tuned = values.null_score_diff_threshold, False
        self._prediction_records = None

    def start(self) -> None:
        """Finds the weights to start from and prepares the folder."""
        values = self._values
        self.tuning.start()
        output_dir.prepare(
            values.output_dir, self._job.setup.config, values.vocab_file
        )

    def train(self) -> str:
        """Trains; returns the prefix of the checkpoint."""
        values, schema = self._values, windows.TRAINING_SCHEMA
        rows = example_files.read(
            self._train_path, schema, values.max_seq_length
        )
        held_out = self.evaluate if values.eval_steps else None
        return self.tuning.train(
            example_files.Rows(rows, schema),
            held_out,
            "f1" if held_out else None,
        )

    def evaluate(self) -> dict[str, float]:
        """Scores of --predict_file."""
        return self.scores(self.find(self._values.eval_batch_size))

    def find(self, batch_size: int, nbest_path: str | None = None) -> Found:
        """Answers the questions of --predict_file.

        Args:
            batch_size: rows of a batch.
            nbest_path: where the n-best are written, or None.
        """
        found = Found()
        with contextlib.ExitStack() as stack:
            writer = None
            if nbest_path:
                writer = stack.enter_context(answer_files.Writer(nbest_path))
            for example, answers in self._answers(batch_size):
                found.best[example.id] = (
                    answers.best.text if answers.best else ""
                )
                found.odds[example.id] = answers.null_odds
                if writer:
                    nbest = answer_files.describe(answers.nbest)
                    writer.write(example.id, nbest)
        if self._values.tune_null_threshold:
            self._threshold = scoring.tune_threshold(
                self._job.predict.examples, found.best, found.odds
            )
            self._tuned = True
        return found

    def scores(self, found: Found) -> dict[str, float]:
        """The official scores, with the threshold of this run."""
        examples = self._job.predict.examples
        if not self._values.version_2_with_negative:
            return scoring.scores_1(examples, found.best)
        scores = scoring.scores_2(
            examples, found.best, found.odds, self._threshold, True
        )
        return {**scores, "null_score_diff_threshold": self._threshold}

    def write_answers(self) -> tuple[Found, list[str]]:
        """Answers all questions; writes the original's files."""
        values = self._values
        path = values.output_dir
        nbest = os.path.join(path, answer_files.NBEST)
        found = self.find(values.predict_batch_size, nbest)
        predictions = found.best
        if values.version_2_with_negative:
            predictions = found.predictions(self._threshold)
        wrote = [
            answer_files.write(
                os.path.join(path, answer_files.PREDICTIONS), predictions
            ),
            nbest,
        ]
        if values.version_2_with_negative:
            odds = os.path.join(path, answer_files.NULL_ODDS)
            wrote.append(answer_files.write(odds, found.odds))
        silent = sum(not text for text in found.best.values())
        if silent:
            say(f"warning: {silent:,} questions have no span to answer with")
        return found, wrote

    def take_threshold(self, step: int) -> None:
        """Takes the threshold that was tuned for these weights before.

        Args:
            step: of the weights.
        """
        values = self._values
        path = os.path.join(values.output_dir, _THRESHOLD_FILE)
        if (
            not values.version_2_with_negative
            or values.tune_null_threshold
            or values["null_score_diff_threshold"].present
            or not os.path.exists(path)
        ):
            return
        try:
            with open(path, encoding="utf-8") as file:
                kept = json.load(file)
            threshold = float(kept["null_score_diff_threshold"])
            tuned_for = int(kept["global_step"])
        except (OSError, ValueError, KeyError, TypeError):
            raise UserError(
                "is not of this script",
                path=path,
                fix="remove it, or pass --null_score_diff_threshold",
            ) from None
        if tuned_for == step:
            say(f"null threshold {threshold:.4f}, tuned before ({path})")
            self._threshold = threshold
        else:
            say(f"{path} is of step {tuned_for}: left aside")

    def keep_threshold(self, step: int) -> list[str]:
        """Writes the tuned threshold, if it was; returns the paths."""
        if not self._tuned:
            return []
        values = self._values
        path = os.path.join(values.output_dir, _THRESHOLD_FILE)
        kept = {
            "null_score_diff_threshold": self._threshold,
            "predict_file": values.predict_file,
            "global_step": step,
        }
        write_whole(path, to_json(kept, indent=2) + "\n")
        say(f"null threshold tuned to {self._threshold:.4f}")
        return [path]

    def export(self) -> str:
        """Writes the SavedModel; returns its folder."""
        from tasks.squad import export as serving

        values = self._values
        if values.answer_text != "offsets":
            say("note: what is exported has --answer_text=offsets")
        version_2 = values.version_2_with_negative
        settings = serving.Settings(
            self._job.setup.config,
            values.vocab_file,
            values.do_lower_case,
            values.strip_accents,
            values.max_seq_length,
            values.doc_stride,
            values.max_query_length,
            values.n_best_size,
            values.max_answer_length,
            self._threshold if version_2 else None,
        )
        return export_folder.write(
            values.export_dir,
            lambda folder: serving.save(
                serving.QuestionAnswering(settings, self.tuning.weights()),
                folder,
            ),
        )

    def _answers(
        self, batch_size: int
    ) -> Iterator[tuple[squad.Example, spans.Answers]]:
        """Yields each question with its answers; logits are not kept."""
        values = self._values
        text_of = self._text_of()
        for example, own in spans.by_question(
            self._job.predict.examples, self._windows(batch_size)
        ):
            yield (
                example,
                spans.extract(
                    own,
                    text_of(example.context, own),
                    values.n_best_size,
                    values.max_answer_length,
                    values.version_2_with_negative,
                ),
            )

    def _windows(self, batch_size: int) -> Iterator[tuple]:
        """Yields rows of records with their logits of start and end."""
        values, schema = self._values, windows.PREDICTION_SCHEMA
        if self._prediction_records is None:
            self._prediction_records = self._records.of_prediction(
                self._job.predict
            )
        path, count = self._prediction_records
        rows, again = itertools.tee(
            example_files.read(path, schema, values.max_seq_length)
        )
        outputs = self.tuning.predict(again, batch_size, "answered", count)
        for row, output in zip(rows, outputs):
            yield row, output["start_logits"], output["end_logits"]

    def _text_of(self) -> Callable:
        values = self._values
        if values.answer_text == "offsets":
            return spans.offsets_text
        return original_text.OriginalText(
            list(self._job.setup.vocab),
            values.do_lower_case,
            values.strip_accents,
            say if values.verbose_logging else None,
        ).text_of


def run(job) -> list[str]:
    """Does what is asked for.

    Args:
        job: a `run_squad.Job`.

    Returns:
        paths that were written.
    """
    values, wrote = job.flags, []
    answering = Answering(job)
    answering.start()
    if values.do_train:
        wrote.append(answering.train())
    step = answering.tuning.take_best()
    answering.take_threshold(step)
    found = None
    if values.do_predict:
        found, paths = answering.write_answers()
        wrote += paths
    elif values.do_eval or values.tune_null_threshold:
        found = answering.find(values.eval_batch_size)
    if found:
        wrote += answering.keep_threshold(step)
    if values.do_eval:
        result = answering.scores(found)
        wrote.append(output_dir.write_results(values.output_dir, step, result))
    if values.export_dir:
        wrote.append(answering.export())
    return wrote
