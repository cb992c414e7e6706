"""Scores, predictions and the export of the weights of a run."""

import functools
import os
from collections.abc import Iterator

from bert.common import storage
from bert.common.progress import Progress, log
from bert.data.sequences import Encoded
from bert.export import folder as export_folder
from bert.inference.predictor import Predictor
from bert.modeling import checkpoints
from bert.modeling.engines import openvino_engine
from bert.modeling.engines.keras_engine import KerasEngine
from bert.modeling.engines.openvino_engine import OpenVINOEngine
from bert.modeling.formats import checkpoint_files, model_card
from bert.modeling.formats.model_folder import ModelFolder
from bert.runs import head_start
from bert.runs.run_folder import RunFolder
from bert.runs.sweep import HeldOut
from bert.tasks.evaluation import BEFORE, FROZEN
from bert.tasks.task import (
    AT_ONCE,
    DEV,
    TEST,
    TRAIN,
    Evaluation,
    Files,
    InputFile,
    Task,
)
from bert.training.trainer import Trainer


class TrainedRun:
    """Evaluates, predicts and exports the weights of a trainer.

    Args:
        folder, task, files: see `finetuning.train_and_evaluate`.
        trainer: Trainer. Trainer of the run.
    """

    def __init__(
        self, folder: RunFolder, task: Task, files: Files, trainer: Trainer
    ):
        self._folder, self._task, self._files = folder, task, files
        self._trainer, self._settings = trainer, folder.settings

        # Cached for repeated validations.
        self._encoded = functools.cache(self._encode_whole)
        self._computed: dict[InputFile, list] = {}  # of the final weights

    def validate(self) -> dict[str, float]:
        """Scores the first evaluation file, during training."""
        file = self._files[DEV][0]
        return self._metrics(file, self._score(file, self._results(file)))

    def evaluate(self) -> tuple[dict[str, float], dict, HeldOut | None]:
        """Scores all evaluation files, and fits the post-processing.

        Returns:
            the metrics, a report on the first file, and the rows of a fold.
        """
        settings, (file, *others) = self._settings, self._files[DEV]
        encoded, results = self._encoded(file), self._results(file)
        if file in self._files[TEST]:
            self._computed[file] = results
        if settings.fits_decision:
            self._task, evaluation = self._task.fit_decision(
                file.rows, encoded, results, settings
            )
        else:
            evaluation = self._score(file, results)
        metrics = self._metrics(file, evaluation)
        for other in others:  # with the post-processing of the first file
            found = self._score(other, self._results(other))
            metrics |= self._metrics(other, found)
        for warning in evaluation.warnings:
            log(f"warning: {file.path}: {warning}")

        report: dict = {"task": self._task.name, "records": file.path}
        report |= {"rows": file.part} if file.part else {}
        report |= {"references": self._baselines(file), **evaluation.report}
        if evaluation.warnings:
            report["warnings"] = evaluation.warnings
        held_out = None
        if settings.fold and self._task.joins_folds:
            held_out = HeldOut(self._task, file.rows, encoded, results)
        return metrics, report, held_out

    def record_decision(self) -> None:
        """Writes the post-processing to the `task.json` of the weights."""
        folder, settings = self._folder, self._settings
        is_writer = folder.is_chief and folder.has_checkpoint
        if not (settings.changes_decision and is_writer):
            return
        task_json = self._task.to_json()
        if settings.fits_decision:
            step = self._trainer.state.weights_step
            task_json |= {checkpoint_files.TUNED_STEP: step}
        checkpoint_files.write_task(folder.path, task_json)

    def predict(self) -> list[str]:
        """Writes the predictions; returns the paths of the files."""
        wrote = []
        for file in self._files[TEST]:
            if file in self._computed:
                encoded, results = self._encoded(file), self._computed[file]
            else:
                encoded, results = self._predicted(file)
            wrote += self._task.write_predictions(
                self._folder.path, file, encoded, results, self._settings
            )
        return wrote

    def export(self, path: str, metrics: dict[str, float]) -> None:
        """Writes an export of the weights, with their scores and a card.

        Args:
            path: str. Empty folder to write to.
            metrics: dict. Metrics of the weights; {} if they were not
                evaluated.
        """
        settings, model = self._settings, self._folder.model
        task, trainer = self._task, self._trainer
        tuned = ModelFolder.of(
            path,
            model.config,
            trainer.state.weights(),
            model.tokenizer.with_max_length(settings.max_seq_length),
            task.to_json() if task.head else None,
            task.pooling_config,
        )
        export_folder.write_model(
            path,
            tuned,
            settings.export_precision,
            settings.export_openvino,
            self._sample() if settings.export_openvino == "int8" else (),
        )

        # Another precision may predict differently, so it is evaluated too.
        network = openvino_engine.find(path)
        if network and settings.do_eval and self._files[DEV]:
            metrics = metrics | self._check_network(OpenVINOEngine(network))

        if metrics:
            export_folder.write_extra(path, export_folder.METRICS, metrics)
        if example := self._example():
            export_folder.write_extra(path, export_folder.EXAMPLE, example)
        model_card.write(
            path,
            os.path.basename(storage.absolute(settings.export_dir)),
            "tensorflow",
            model_card.task_of(trainer.state.named, task.head is None),
            settings,
            settings.init_checkpoint
            or self._folder.recorded.get("init_checkpoint"),
            model_card.read_scores(
                self._folder.path, trainer.state.weights_step
            )
            or settings.scores,
        )

    @functools.cached_property
    def _engine(self) -> KerasEngine:
        """The network of the trainer; a run that only trains builds none."""
        network, head = self._trainer.train_step.model, None
        if self._task.head:
            head = network.get_layer(self._task.head)
        strategy = self._trainer.train_step.strategy
        encoder = checkpoints.encoder_of(network)
        return KerasEngine(encoder, head, strategy=strategy)

    def _encode(self, file: InputFile) -> tuple[int, Iterator[Encoded]]:
        """Encodes the examples of a file lazily; logs long texts at the end.

        Returns:
            the number of examples, and the examples.
        """
        task, lengths = self._task, list[int]()
        examples = task.inputs_of(file.rows)

        def encoded() -> Iterator[Encoded]:
            for i in range(0, len(examples), AT_ONCE):
                for x in task.encode(examples[i : i + AT_ONCE]):
                    lengths.append(x.num_tokens)
                    yield x
            log_long_texts(
                file.path, lengths, task.max_length, task.reads_windows
            )

        return len(examples), encoded()

    def _encode_whole(self, file: InputFile) -> list[Encoded]:
        """Encodes the examples of a file."""
        count, examples = self._encode(file)
        progress, encoded = Progress("tokenized", count, "examples"), []
        for x in examples:
            encoded.append(x)
            progress.update(len(encoded))
        return encoded

    def _predicted(self, file: InputFile) -> tuple[list[Encoded], list]:
        """Returns the examples of a file without their sequences, and results.

        The file may be larger than the memory for its sequences.
        """
        count, examples = self._encode(file)
        progress = Progress("predicted", count, "examples")
        predictor = self._predictor(self._settings.predict_batch_size)
        encoded, results = [], []
        for x, result in predictor.compute(examples, progress.update):
            encoded.append(x._replace(rows=[]))
            results.append(result)
        return encoded, results

    def _results(self, file: InputFile, engine=None) -> list:
        """Returns the results of the examples of an evaluation file."""
        encoded = self._encoded(file)
        progress = Progress("evaluated", len(encoded), "examples")
        size = self._settings.eval_batch_size
        computed = self._predictor(size, engine).compute(
            encoded, progress.update
        )
        return [result for _, result in computed]

    def _predictor(self, batch_size: int, engine=None) -> Predictor:
        """Returns a predictor with the current weights."""
        tokens = batch_size * self._settings.max_seq_length
        return Predictor(self._task, engine or self._engine, tokens)

    def _score(self, file: InputFile, results: list) -> Evaluation:
        """Scores the results of an evaluation file."""
        return self._task.score(file.rows, self._encoded(file), results)

    def _metrics(
        self, file: InputFile, evaluation: Evaluation
    ) -> dict[str, float]:
        """Names the metrics as the original does."""
        # A second file, such as mismatched, has a prefix.
        subset = f"{file.subset}_" if file.subset else ""
        prefix = f"{self._task.prefix}{subset}"
        found = {f"{prefix}{k}": x for k, x in evaluation.metrics.items()}
        if evaluation.losses is not None and not subset:
            # As in Estimator: the mean over the batches.
            losses, size = evaluation.losses, self._settings.eval_batch_size
            starts = range(0, len(losses), size)
            means = [float(losses[i : i + size].mean()) for i in starts]
            found["loss"] = sum(means) / len(means)
        return found

    def _baselines(self, file: InputFile) -> dict[str, float]:
        """Scores of the baselines: "metric/kind" -> value."""
        task, trainer, settings = self._task, self._trainer, self._settings
        train = [*self._files[TRAIN], file][0].rows
        encoded = self._encoded(file)
        found = task.baselines(file.rows, encoded, train, settings)

        # The weights before training.
        model, folder = self._folder.model, self._folder
        head = head_start.read(folder) if settings.start_head else None
        compares = task.compares_before or head is not None
        if (
            settings.do_train
            and compares
            and model.path not in ("", folder.shared)
        ):
            trained = trainer.state.weights()
            checkpoints.assign(
                trainer.state.named, model.weights()[0], model.path
            )
            if head is not None:
                head_start.assign(trainer, task, head)

            kind = BEFORE if head is None else FROZEN
            before = self._score(file, self._results(file)).metrics
            found |= {f"{k}/{kind}": x for k, x in before.items()}
            checkpoints.assign(trainer.state.named, trained, folder.path)
        return {f"{task.prefix}{k}": x for k, x in found.items()}

    def _check_network(self, engine: OpenVINOEngine) -> dict[str, float]:
        """Scores an exported network on the evaluation file."""
        file = self._files[DEV][0]
        exported = self._score(file, self._results(file, engine))
        found = dict(exported.metrics)
        if exported.predicted:
            trained = self._score(file, self._results(file)).predicted
            pairs = zip(exported.predicted, trained, strict=True)
            found["changed_labels"] = sum(a != b for a, b in pairs)
        shown = " | ".join(f"{name} {x:.4g}" for name, x in found.items())
        log(f"OpenVINO | {shown}")
        return {f"openvino_{name}": x for name, x in found.items()}

    def _sample(self) -> list:
        """Tokenized texts of training, else of evaluation."""
        file = (self._files[TRAIN] or self._files[DEV])[0]
        return [row for x in self._encoded(file) for row in x.rows]

    def _example(self) -> dict[str, str]:
        """An example of the data, for the pages of an export."""
        files = self._files[DEV] or self._files[TRAIN]
        return self._task.example(files[0].rows) if files else {}


def log_long_texts(
    path: str, lengths: list[int], limit: int, reads_windows: bool = False
) -> None:
    """Logs the texts of a file that are longer than a sequence.

    Args:
        path: str. The file.
        lengths: list of int. Number of tokens of each example.
        limit: int. Longest sequence in tokens.
        reads_windows: bool. Whether longer texts are read in windows instead
            of truncated. Default: False.
    """
    count = sum(tokens > limit for tokens in lengths)
    if count:
        level, done = "warning", "were truncated"
        if reads_windows:
            level, done = "note", "are read in windows"
        log(
            f"{level}: {path}: {count:,} of {len(lengths):,} texts are longer "
            f"than {limit} tokens and {done} (longest: {max(lengths):,}); see "
            "--max_seq_length"
        )
