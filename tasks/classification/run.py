"""Training, evaluation, prediction and export of run_classifier.py.

Wiring: records -> `finetuning` -> logits -> files.
"""

import dataclasses
import functools
import os
import statistics
import time
from collections.abc import Iterator

import numpy as np

from bert.common import flags
from bert.common.progress import say
from bert.data import features
from bert.data.records import example_files
from bert.data.text import vocabulary
from bert.data.text.tokenizer import Tokenizer
from bert.modeling import task_losses, task_models
from bert.modeling.formats import model_folder, portable
from bert.modeling.formats.model_folder import ModelFolder
from bert.serving import export_folder, graphs, lite
from bert.tasks import (
    finetuning_run,
    records,
    run_folder,
    training_run,
)
from bert.tasks.classification import (
    answers,
    errors,
    examples,
    export,
    inputs,
    metrics,
)
from bert.tasks.classification.examples import (
    CLASSES,
    MULTI_LABEL,
    REGRESSION,
    Labels,
)
from bert.tasks.classification.inputs import DEV, TEST, TRAIN
from bert.tasks.classification.settings import Settings

_RECORDS = {DEV: "eval", TEST: "predict", TRAIN: "train"}  # .tf_record
_BATCH_SUMS = {
    CLASSES: task_losses.class_sums,
    MULTI_LABEL: task_losses.multi_label_sums,
    REGRESSION: task_losses.number_sums,
}
_SHORT = 100  # characters of the example of an export


class Classification:
    """Classification or regression, for `tasks.finetuning_run.run`.

    Args:
        settings: the settings of the script, or of this seed's run.
        model: the result of `finetuning.check`.
        folder: the folder of the run.
        data: the input files.
        of_seeds: folder of records and predictions; default: that of the run.

    Attributes:
        tuning: `finetuning_run.FineTuningRun`.
        evaluated: logits of the last evaluation, [N, C].
        report: see `finetuning_run.FineTuningTask`.
    """

    def __init__(
        self,
        settings: Settings,
        model: ModelFolder,
        folder: run_folder.RunFolder,
        data: inputs.Data,
        of_seeds: run_folder.RunFolder | None = None,
    ):
        self._settings, self._model, self._data = settings, model, data
        self._tuning_settings = tuning = settings.tuning
        self._folder = of_seeds or folder
        self.evaluated, self.report = None, {}
        labels = data.labels
        is_number = labels.kind == REGRESSION
        self.tuning = finetuning_run.FineTuningRun(
            settings,
            folder,
            model,
            training_run.TrainingTask(
                lambda: task_models.build_classifier(
                    model.config, labels.size, tuning.training.random_seed
                ),
                (task_losses.LABELS,),
                task_losses.label_weights,
                _BATCH_SUMS[labels.kind],
                ("loss",) if is_number else ("loss", "accuracy"),
                records.of_training(
                    folder.shared,
                    next((x.path for x in data.of(TRAIN)), None),
                ),
                data.describe(),
            ),
            sum(len(x.examples) for x in data.of(TRAIN)),
        )

    @functools.cached_property
    def _paths(self) -> dict[inputs.Part, str]:
        """The records of each file, which are made when first needed."""
        return {
            part: make_records(
                self._folder.path,
                self._settings,
                self._data.labels,
                part,
                self._model.tokenizer,
            )
            for part in self._data.parts
        }

    def train(self) -> str:
        """Trains; returns the prefix of the checkpoint."""
        data, validate = self._data, None
        (part,) = data.of(TRAIN)
        if data.of(DEV):
            validate = lambda: self._scores(data.of(DEV)[0])  # noqa: E731
        return self.tuning.train(
            example_files.load(
                self._paths[part],
                examples.schema(data.labels),
                self._tuning_settings.max_seq_length,
            ),
            validate,
            f"eval_{data.metrics[0]}",
        )

    def evaluate(self) -> dict[str, float]:
        """Metrics and losses of all files for evaluation."""
        result = {}
        for part in reversed(self._data.of(DEV)):
            result |= self._scores(part)
        self.report = errors.report(part, self._data.labels, self.evaluated)
        self.report |= {"task": self._settings.task, "records": part.path}
        return result

    def predict(self) -> list[str]:
        """Writes the predictions for --do_predict."""
        wrote, glue_dir = [], None
        if self._folder.is_chief:
            glue_dir = self._settings.glue_dir
        labels, has_pairs = self._data.labels, self._data.has_pairs
        for part in self._data.of(TEST):
            logits = self._logits(
                part, self._tuning_settings.predict_batch_size, "predicted"
            )

            def path(stem: str, part=part) -> str:
                wrote.append(self._folder.file(part.file(stem, ".tsv")))
                return wrote[-1]

            rows = part.examples
            answers.write_test_results(path("test_results"), logits, labels)
            answers.write_predictions(
                path("predictions"), rows, logits, labels, has_pairs
            )
            if part.is_labelled:
                if labels.kind == CLASSES:
                    answers.write_doubtful_labels(
                        path("doubtful_labels"), rows, logits, labels, has_pairs
                    )
                predicted = metrics.answers(logits, labels.kind)
                scores = metrics.scores(
                    self._data.metrics, part.labels, predicted
                )
                shown = " | ".join(f"{k} {v:.4f}" for k, v in scores.items())
                say(f"{part.path} | {shown}")
            if glue_dir and part.submission:
                ids = [example.id for example in rows]
                wrote.append(
                    answers.write_submission(
                        glue_dir, part.submission, ids, logits, labels
                    )
                )
        return wrote

    def save_model(self, folder: str) -> dict[str, float]:
        """Writes the SavedModel, an example of its texts, the LiteRT file."""
        weights = self.tuning.weights()
        classifier = export.Classifier(
            self._model,
            self._settings,
            self._data.labels,
            self._data.has_pairs,
            weights,
        )
        graphs.save(classifier, folder, "tokens", "examples")
        for part in (self._data.of(DEV) or self._data.of(TRAIN))[:1]:
            row = min(part.examples, key=lambda x: abs(len(x.text) - _SHORT))
            texts = {"text": row.text, "text_b": row.text_b}
            export_folder.write_extra(folder, export_folder.EXAMPLE, texts)
        precision = self._settings.export_lite
        if not precision:
            return {}
        model = portable.build(self._model.config, weights, folder)
        network = lite.write(model, folder, precision)
        if not self._tuning_settings.do_eval:
            return {}
        part, kind = self._data.of(DEV)[0], self._data.labels.kind
        logits = []
        for row in self._rows(part):
            ids, segments = (
                np.array([row[name]], np.int32)
                for name in (features.INPUT_IDS, features.SEGMENT_IDS)
            )
            logits.append(network(ids, np.ones_like(ids), segments))
        predicted = metrics.answers(np.concatenate(logits), kind)
        result = metrics.scores(self._data.metrics, part.labels, predicted)
        if kind != REGRESSION:
            before = metrics.answers(self.evaluated, kind)
            result["changed_labels"] = int((predicted != before).sum())
        shown = " | ".join(f"{k} {v:.4g}" for k, v in result.items())
        say(f"LiteRT, {precision} | {part.path} | {shown}")
        return {f"lite_{name}": value for name, value in result.items()}

    def _scores(self, part: inputs.Part) -> dict[str, float]:
        """Metrics and losses of a file with labels."""
        data = self._data
        batch_size = self._tuning_settings.training.eval_batch_size
        kind, gold = data.labels.kind, part.labels
        self.evaluated = self._logits(part, batch_size, "evaluated")
        each = metrics.losses(self.evaluated, gold, kind)
        batches = [
            each[i : i + batch_size].mean()
            for i in range(0, len(each), batch_size)
        ]
        predicted = metrics.answers(self.evaluated, kind)
        result = metrics.scores(data.metrics, gold, predicted)
        result["loss"] = float(each.mean())
        prefix = f"eval_{part.name}{'_' if part.name else ''}"
        result = {f"{prefix}{name}": x for name, x in result.items()}
        if not part.name:  # as in Estimator: the mean over the batches
            result["loss"] = sum(map(float, batches)) / len(batches)
        return result

    def _logits(
        self, part: inputs.Part, batch_size: int, what: str
    ) -> np.ndarray:
        """Logits of a file, [N, C]."""
        outputs = self.tuning.predict(
            self._rows(part), batch_size, what, len(part.examples)
        )
        return np.stack([output["logits"] for output in outputs])

    def _rows(self, part: inputs.Part) -> Iterator[dict]:
        """The examples of a file, unpadded."""
        return example_files.read(
            self._paths[part],
            examples.schema(self._data.labels),
            self._tuning_settings.max_seq_length,
        )


def run(
    settings: Settings,
    model: ModelFolder,
    folder: run_folder.RunFolder,
    data: inputs.Data,
) -> None:
    """Trains, evaluates, predicts and exports, with one or several seeds.

    With several seeds, each run has its own folder in --output_dir; the
    results are means, and the best run is used for prediction and export.

    Args:
        settings: the settings of the script.
        model: the result of `finetuning.check`.
        folder: the folder of the run.
        data: the input files.
    """
    tuning = settings.tuning
    for note in data.notes:
        say(note)
    if settings.num_seeds == 1:
        task = Classification(settings, model, folder, data)
        finetuning_run.run(tuning, task)
        return
    of_seeds, results, wrote = settings_of_seeds(settings), [], []
    evaluated = []
    seconds, start = tuning.training.seconds, time.monotonic()
    folder.write_inputs()
    length = {"max_seq_length": tuning.max_seq_length}
    model_folder.write_task(folder.path, data.describe() | length)

    def make_task(one: Settings) -> Classification:
        own = folder.below(os.path.basename(one.tuning.training.output_dir))
        own.check()
        return Classification(one, model, own, data, folder)

    for one in of_seeds:
        if seconds:  # the time of all seeds together
            left = max(1.0, seconds - (time.monotonic() - start))
            one = flags.replace(one, train_for=f"{left:.1f}s")
        task = make_task(one)
        paths, scores = finetuning_run.train_and_evaluate(one.tuning, task)
        results.append(scores)
        evaluated.append(task.evaluated)
        wrote += paths
    step = task.tuning.weights_step
    wrote += folder.write_results(step, summarize(results))
    if tuning.do_predict or tuning.export_dir:
        best = best_of(results, data.metrics[0])
        one = of_seeds[best]
        task = make_task(one)
        task.evaluated = evaluated[best]
        task.tuning.start()
        task.tuning.restore_best()
        say(
            f"predictions and export use {one.tuning.training.output_dir}, "
            f"step {task.tuning.weights_step}"
        )
        wrote += finetuning_run.predict_and_export(tuning, task, results[best])
    finetuning_run.print_written(wrote)


def settings_of_seeds(settings: Settings) -> list[Settings]:
    """Settings of each run of --num_seeds, with its seed and folder."""
    training = settings.tuning.training
    first = training.random_seed
    return [
        flags.replace(
            settings,
            random_seed=seed,
            output_dir=os.path.join(training.output_dir, f"seed_{seed}"),
        )
        for seed in range(first, first + settings.num_seeds)
    ]


def best_of(results: list[dict[str, float]], metric: str) -> int:
    """The index of the result with the highest metric."""
    return max(range(len(results)), key=lambda i: results[i][f"eval_{metric}"])


def summarize(results: list[dict[str, float]]) -> dict[str, float]:
    """Means over seeds, and the standard deviations of scores."""
    summary = {}
    for name in results[0]:
        found = [result[name] for result in results]
        summary[name] = statistics.fmean(found)
        if len(found) > 1 and name.startswith("eval_"):
            summary[f"{name}_std"] = statistics.stdev(found)
    return summary


def make_records(
    folder: str,
    settings: Settings,
    labels: Labels,
    part: inputs.Part,
    tokenizer: Tokenizer,
) -> str:
    """Writes the records of a file, unless they exist already.

    Warns of texts that are cut.

    Returns:
        the path of the records.
    """
    path = os.path.join(folder, part.file(_RECORDS[part.split], ".tf_record"))
    length = settings.tuning.max_seq_length
    lengths: list[int] = []  # of the texts that are written, in tokens

    def encoded() -> Iterator[dict]:
        vocab = tokenizer.vocab
        yield from examples.encode(
            part.examples,
            tokenizer.fast.ids_of_lines,
            (vocab[vocabulary.CLS], vocab[vocabulary.SEP]),
            length,
            labels,
            lengths.append,
        )

    records.make(
        settings,
        path,
        part.path,
        part.examples,
        encoded,
        examples.schema(labels),
        tokenizer,
        labels=dataclasses.asdict(labels),
    )
    cut = sum(tokens > length for tokens in lengths)
    if cut:
        say(
            f"warning: {part.path}: texts longer than {length} tokens, which "
            f"were cut: {cut:,} of {len(lengths):,} (the longest: "
            f"{max(lengths):,}); see --max_seq_length"
        )
    return path
