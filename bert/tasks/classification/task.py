"""The task of run_classifier.py: classification and regression of texts."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from bert.common.progress import log
from bert.data import features, postprocessing, sequence_packing
from bert.data.postprocessing import CLASSES, MULTI_LABEL, REGRESSION
from bert.data.records.examples import Examples
from bert.data.sequences import Row, rows_of
from bert.modeling import task_losses, task_models
from bert.modeling.formats import checkpoint_files
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks import eval_report, finetuning, run_folder
from bert.tasks.classification import examples, predictions, scores
from bert.tasks.classification.datasets import (
    DEV,
    MAE,
    TEST,
    TRAIN,
    ClassificationData,
    Split,
)
from bert.tasks.classification.pipeline import TextClassification
from bert.tasks.classification.settings import LOSS, Settings
from bert.tasks.run_folder import RunFolder
from bert.training.task import Task
from bert.training.trainer import Trainer

_AT_ONCE = 1024  # examples to tokenize together
_SHORT = 100  # characters of an export's example text
_BATCH_SUMS = {
    CLASSES: task_losses.class_sums,
    MULTI_LABEL: task_losses.multi_label_sums,
}


def make_task(
    folder: RunFolder,
    data: ClassificationData,
) -> Task:
    """Encodes the examples, and makes the task for training.

    Args:
        folder: the folder of the run, with settings and initial model.
        data: the input files.

    Raises:
        UserError: there are too few examples for one step, or the folder
            holds a run with other training data.
    """
    settings, model = folder.settings, folder.model
    for note in data.notes:
        log(note)
    labels = data.labels

    # Errors in the data are reported before the network is built.
    encoded, records = None, ""
    for split in data.split(TRAIN):
        records = folder.identify(split.sha256, settings.divides)
        texts = encode(split, settings, data, model)
        rows = itertools.chain.from_iterable(texts)
        encoded = Examples(rows, examples.schema(labels))

    best = settings.metric_for_best_model or data.metrics[0]
    is_number = labels.kind == REGRESSION
    classification = Classification(folder, data)

    return Task(
        settings.task,
        lambda: task_models.build_classifier(
            model.config, labels.size, settings.random_seed
        ),
        (task_losses.LABELS,),
        task_losses.label_weights,
        _batch_sums(settings, data),
        finetuning.schedule(settings, len(encoded or ())),
        metrics=("loss",) if is_number else ("loss", "accuracy"),
        records=finetuning.describe(encoded, records),
        metric=f"eval_{best}",
        is_loss=best in (LOSS, MAE),
        examples=encoded,
        labels=data.describe() | data.describe_training(),
        validate=classification.validate,
        evaluate=classification.evaluate,
        predict=classification.predict,
        describe=classification.describe,
        sample=classification.sample,
        check_network=classification.check_network,
        example=classification.example,
    )


class Classification:
    """Evaluation, prediction and export of a run.

    Args:
        folder: the folder of the run, with settings and initial model.
        data: the input files.

    Attributes:
        labels: the labels, with their post-processing: recorded beside the
            weights, until an evaluation fits it.
    """

    def __init__(self, folder: RunFolder, data: ClassificationData):
        settings, model = folder.settings, folder.model
        self._settings, self._model = settings, model
        self._folder, self._data = folder, data
        self.labels = data.labels

        # Cached for repeated validations.
        self._texts = functools.cache(
            lambda split: [*encode(split, settings, data, model)]
        )

    def validate(self, trainer: Trainer) -> dict[str, float]:
        """Scores the first evaluation file, during training."""
        split = self._data.split(DEV)[0]
        logits = self._evaluation_logits(trainer, split)
        answers = postprocessing.predictions(logits, self._data.labels.kind)
        return score(self._settings, self._data, split, logits, answers)

    def evaluate(self, trainer: Trainer) -> tuple[dict[str, float], dict]:
        """Scores all evaluation files, and fits the post-processing.

        Returns:
            the metrics, and a report on the first file.
        """
        settings, data = self._settings, self._data
        split, *others = data.split(DEV)
        result = {}
        for other in others:
            logits = self._evaluation_logits(trainer, other)
            found = self._predictions(logits)
            result |= score(settings, data, other, logits, found)

        logits, fitted = self._evaluation_logits(trainer, split), None
        found = self._predictions(logits)
        if settings.tunes:
            fitted = scores.fit(logits, split.labels, data, settings)
            scores.log_fitted(fitted, split, data, settings)
            found = fitted.predictions
            self.labels = dataclasses.replace(
                data.labels, decision=fitted.decision
            )
        result |= score(settings, data, split, logits, found)

        # Folds are reported together.
        if settings.fold:
            predictions.write_logits(trainer.folder, logits)
        report = predictions.report(split, self.labels, logits, found)
        if fitted:
            report |= fitted.report
        report["references"] |= self._baseline_scores()
        if data.class_weights:
            report["class_weights"] = data.weights_by_name()
        if settings.eval_fraction:
            report["rows"] = f"{len(split.examples):,} of its rows"
        return result, report | {"task": settings.task, "records": split.path}

    def predict(self, trainer: Trainer) -> list[str]:
        """Records the post-processing, and writes all predictions."""
        self._record(trainer)
        settings, data = self._settings, self._data
        batch_size, wrote = settings.predict_batch_size, []
        for split in data.split(TEST):
            texts = encode(split, settings, data, self._model)
            logits = self._logits(trainer, batch_size, split, texts)
            wrote += self._write_predictions(split, logits)
        return wrote

    def describe(self, trainer: Trainer) -> dict:
        """The `task.json` of an export of the run."""
        return (
            self._data.describe()
            | self._data.describe_training()
            | self.labels.decision.described()
        )

    def sample(self) -> list[Row]:
        """Returns tokenized texts of training, else of evaluation."""
        split = (self._data.split(TRAIN) or self._data.split(DEV))[0]
        return rows_of(itertools.chain.from_iterable(self._texts(split)))

    def check_network(self, trainer: Trainer, engine) -> dict[str, float]:
        """Scores an exported network on the evaluation file."""
        data, labels = self._data, self.labels
        if not data.split(DEV):
            return {}
        split, texts = data.split(DEV)[0], self._texts(data.split(DEV)[0])
        rows = rows_of(itertools.chain.from_iterable(texts))
        outputs = np.stack(sequence_packing.map_packed(engine, rows, True))
        logits = data.long_texts.pooled(outputs, [*map(len, texts)])

        # The metrics of the run, and the number of changed predictions.
        predicted = self._predictions(logits)
        result = scores.compute(data.metrics, split.labels, predicted)
        if labels.kind != REGRESSION:
            before = self._predictions(self._evaluation_logits(trainer, split))
            result["changed_labels"] = int((predicted != before).sum())
        return result

    def example(self) -> dict[str, str]:
        """A text of the data as an example input of an export."""
        for split in (self._data.split(DEV) or self._data.split(TRAIN))[:1]:
            row = min(split.examples, key=lambda x: abs(len(x.text) - _SHORT))
            return {"text": row.text, "text_b": row.text_b}
        return {}

    def _predictions(self, logits: np.ndarray) -> np.ndarray:
        """Predictions with the current post-processing."""
        return postprocessing.predictions(
            logits, self.labels.kind, self.labels.decision
        )

    def _evaluation_logits(self, trainer: Trainer, split: Split) -> np.ndarray:
        """Logits of an evaluation file, float32 [N, C]."""
        batch_size = self._settings.eval_batch_size
        return self._logits(trainer, batch_size, split, self._texts(split))

    def _logits(
        self,
        trainer: Trainer,
        batch_size: int,
        split: Split,
        texts: Iterable[list[dict]],
    ) -> np.ndarray:
        """Logits of the texts of a file, float32 [N, C]."""
        long_texts, total = self._data.long_texts, len(split.examples)
        if long_texts.pool:
            texts = [*texts]  # to count the windows
            total = sum(map(len, texts))

        counts: list[int] = []

        def rows():
            for windows in texts:
                counts.append(len(windows))
                yield from windows

        description = "predicted" if split.name == TEST else "evaluated"
        outputs = trainer.predict(rows(), batch_size, description, total)
        logits = np.stack([output["logits"] for output in outputs])
        return long_texts.pooled(logits, counts)

    def _record(self, trainer: Trainer) -> None:
        """Writes the post-processing to the `task.json` of the weights."""
        settings, folder = self._settings, trainer.folder
        is_given = (
            settings.tunes
            or settings.unknown_below is not None
            or settings.long_texts
        )
        is_chief = self._folder.is_chief
        if not (is_given and is_chief and run_folder.has_checkpoint(folder)):
            return

        task = checkpoint_files.recorded_task(folder)
        if task is None:  # of an earlier version
            task = {"max_seq_length": settings.max_seq_length}
        for name in ("decision", "windows"):
            task.pop(name, None)
        checkpoint_files.write_task(folder, task | self.describe(trainer))

    def _write_predictions(self, split: Split, logits: np.ndarray) -> list[str]:
        """Writes the predictions for a file; returns the paths."""
        folder, labels = self._folder, self.labels
        rows, has_pairs = split.examples, self._data.has_pairs
        results, table = (
            folder.file(split.file(stem, ".tsv"))
            for stem in ("test_results", "predictions")
        )
        predictions.write_test_results(results, logits, labels)
        predictions.write_predictions(table, rows, logits, labels, has_pairs)
        wrote = [results, table]

        # A labelled test file is scored, but never used for selection.
        if split.is_labelled:
            names, found = self._data.metrics, self._predictions(logits)
            result = scores.compute(names, split.labels, found)
            shown = " | ".join(f"{name} {x:.4f}" for name, x in result.items())
            log(f"{split.path} | {shown}")

        # Workers share this folder, so only the chief writes.
        glue = self._settings.glue_dir
        if folder.is_chief and glue and split.submission:
            ids = [example.id for example in rows]
            wrote.append(
                predictions.write_submission(
                    glue, split.submission, ids, logits, labels
                )
            )
        return wrote

    def _baseline_scores(self) -> dict[str, float]:
        """Scores of the TF-IDF baseline; {} without it."""
        data = self._data
        if not (self._settings.tfidf_baseline and data.split(TRAIN)):
            return {}
        train, split = data.split(TRAIN)[0], data.split(DEV)[0]
        chosen = scores.tfidf_predictions(
            train, split, data.labels.kind, self._model.tokenizer
        )
        if chosen is None:
            return {}
        result = scores.compute(data.metrics, split.labels, chosen)
        return {
            f"eval_{name}/{eval_report.TFIDF}": value
            for name, value in result.items()
        }


def _batch_sums(settings: Settings, data: ClassificationData) -> Callable:
    """The loss function, with class weights and label smoothing."""
    kind, smoothing = data.labels.kind, settings.label_smoothing
    if kind == REGRESSION:
        return task_losses.number_sums
    return functools.partial(
        _BATCH_SUMS[kind], weights=data.class_weights, smoothing=smoothing
    )


def encode(
    split: Split,
    settings: Settings,
    data: ClassificationData,
    model: ModelFolder,
) -> Iterator[list[dict]]:
    """Yields the sequences of each text of a file; logs long texts.

    Training always truncates long texts, also if windows are chosen.

    Args:
        split: the file.
        settings: the settings of the script.
        data: labels and long-text handling.
        model: the model, with its tokenizer.
    """
    limit, long_texts = settings.max_seq_length, data.long_texts
    if split.name == TRAIN:
        long_texts = long_texts.without_windows()
    task = TextClassification(
        model.tokenizer, data.labels, limit, long_texts, data.has_pairs
    )
    is_several = data.labels.kind == MULTI_LABEL
    blank = [0] * data.labels.size if is_several else [0]
    lengths: list[int] = []  # in tokens, before truncation
    for start in range(0, len(split.examples), _AT_ONCE):
        held = split.examples[start : start + _AT_ONCE]
        texts = [{"text": x.text, "text_b": x.text_b} for x in held]
        for example, encoded in zip(held, task.encode(texts)):
            lengths.append(encoded.num_tokens)
            label = example.label
            if not isinstance(label, list):
                label = blank if label is None else [label]
            yield [
                {
                    features.INPUT_IDS: ids,
                    features.SEGMENT_IDS: segments,
                    features.LABEL_IDS: label,
                    features.IS_REAL_EXAMPLE: [1],
                }
                for ids, segments in encoded.rows
            ]

    # Log the long texts.
    count = sum(tokens > limit for tokens in lengths)
    if count:
        level, done = "warning", "were truncated"
        if long_texts.pool:
            level, done = "note", "are read in windows"
        log(
            f"{level}: {split.path}: {count:,} of {len(lengths):,} texts are "
            f"longer than {limit} tokens and {done} (longest: "
            f"{max(lengths):,}); see --max_seq_length"
        )


def _ranking(
    data: ClassificationData, split: Split, logits: np.ndarray
) -> dict[str, float]:
    """Ranking metrics of pairs with labels 0 and 1, by first text."""
    labels, gold, ranks = data.labels, split.labels, logits[:, 0]
    if labels.kind == CLASSES and sorted(labels.names) == ["0", "1"]:
        one = labels.names.index("1")
        gold, ranks = gold == one, logits[:, one] - logits[:, 1 - one]
    elif labels.kind != REGRESSION or not np.isin(gold, (0, 1)).all():
        return {}
    if not data.has_pairs:
        return {}
    queries = [example.text for example in split.examples]
    return scores.ranking(queries, gold.astype(float), ranks)


def score(
    settings: Settings,
    data: ClassificationData,
    split: Split,
    logits: np.ndarray,
    chosen: np.ndarray,
) -> dict[str, float]:
    """Computes metrics and losses of a labelled file.

    Args:
        settings: the settings of the script.
        data: labels and metrics of the task.
        split: the file, with N examples.
        logits: float32 [N, C].
        chosen: the predictions, see `postprocessing.predictions`.
    """
    kind, gold = data.labels.kind, split.labels
    each = scores.losses(logits, gold, kind)
    result = scores.compute(data.metrics, gold, chosen)
    result["loss"] = float(each.mean())
    result |= _ranking(data, split, logits)

    # A second file, such as mismatched, has a prefix.
    prefix = f"eval_{split.subset}{'_' if split.subset else ''}"
    result = {f"{prefix}{name}": value for name, value in result.items()}
    if not split.subset:  # as in Estimator: the mean over the batches
        size = settings.eval_batch_size
        starts = range(0, len(each), size)
        means = [float(each[i : i + size].mean()) for i in starts]
        result["loss"] = sum(means) / len(means)
    return result
