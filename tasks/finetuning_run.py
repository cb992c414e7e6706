"""A fine-tuning run of any task, from its checked files to its export.

    FineTuningRun -> start -> train -> evaluate -> predict -> export

This module knows no task: a task passes its network, examples and metrics.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import numpy as np

from bert.common.errors import UserError
from bert.common.progress import Progress, say
from bert.data import batching, features
from bert.data.records import example_files
from bert.modeling import checkpoints, layer_decay
from bert.modeling.formats import model_folder
from bert.modeling.formats.model_folder import ModelFolder
from bert.serving import export_folder
from bert.tasks import finetuning_settings, run_folder, training_run
from bert.training import prediction, workers

_WINDOW = 64  # batches of predictions that are sorted by length together


class FineTuningRun:
    """Training and inference with the network of a task.

    Args:
        script_settings: settings of the script.
        folder: the folder of the run.
        model: the initial weights; None: those of --init_checkpoint.
        task: the network to train, and its losses.
        num_examples: examples of training; 0 if nothing is trained.
        choices: sequences of an example.

    Attributes:
        folder: the folder of the run.
        weights_step: training step of the current weights.
        num_train_steps: as in the original: examples / batch * epochs.
    """

    def __init__(
        self,
        script_settings,
        folder: run_folder.RunFolder,
        model: ModelFolder | None,
        task: training_run.TrainingTask,
        num_examples: int = 0,
        choices: int = 1,
    ):
        self._model, self._labels = model, task.labels
        self._tuning = tuning = script_settings.tuning
        self._training = training = tuning.training
        self._choices, self.folder = choices, folder
        self._lengths = [tuning.max_seq_length]
        if tuning.length_buckets:
            self._lengths = batching.bucket_lengths(tuning.max_seq_length)
        self._num_examples = num_examples
        self.num_train_steps = int(
            num_examples / training.train_batch_size * tuning.num_train_epochs
        )

        def build_model():
            model = task.build_model()
            named = checkpoints.model_variables(model)
            layer_decay.freeze(named, tuning.freeze_layers)
            return model

        self._run = training_run.TrainingRun(
            script_settings,
            training,
            folder,
            dataclasses.replace(
                task,
                build_model=build_model,
                records=f"{num_examples} examples of {task.records}",
                num_train_steps=self.num_train_steps,
                num_warmup_steps=int(
                    self.num_train_steps * tuning.warmup_proportion
                ),
            ),
        )
        self._run.optimizer.rate_factors = layer_decay.rate_factors(
            self._run.named,
            self._run.model.trainable_variables,
            tuning.layer_decay,
            folder.config.num_hidden_layers,
        )
        if training.do_train:
            self._run.check_batch_size(
                "train_batch_size", training.train_batch_size
            )
        self._predictors = {}
        self.weights_step = 0

    @property
    def step(self) -> int:
        """Number of completed training steps."""
        return self._run.step

    def start(self) -> None:
        """Loads the initial weights and prepares output_dir.

        Raises:
            UserError: as for `training_run.TrainingRun.start`.
        """
        if self._run.start(self._model):
            say("warning: no --init_checkpoint: training from random weights")
        if self._labels and self._training.do_train:
            length = {"max_seq_length": self._tuning.max_seq_length}
            model_folder.write_task(self.folder.path, self._labels | length)

    def train(
        self,
        examples,
        evaluate: Callable[[], dict[str, float]] | None = None,
        best_metric: str = "",
    ) -> str:
        """Trains to the last step.

        Args:
            examples: `data.records.example_files.Examples`.
            evaluate: returns metrics of the current weights; called every
                --eval_steps and at the end, never if --eval_steps is 0.
            best_metric: the checkpoint with the highest value of this metric
                is kept in output_dir/best.

        Returns:
            the prefix of the last checkpoint.

        Raises:
            UserError: if there are too few examples for one step.
        """
        tuning, training = self._tuning, self._training
        if not self.num_train_steps:
            raise UserError(
                f"{self._num_examples} examples, "
                f"--train_batch_size={training.train_batch_size}, "
                f"--num_train_epochs={tuning.num_train_epochs}",
                expected="enough for one step",
            )
        lengths = self._lengths
        if self._run.use_xla:
            lengths = batching.compiled_lengths(lengths)

        def batches():
            return batching.training_batches(
                examples,
                lengths,
                training.train_batch_size,
                training.random_seed,
                self.step,
                workers.share(),
            )

        schedule = self._run.schedule(
            batches,
            training.train_batch_size,
            self.num_train_steps,
            eval_steps=training.eval_steps,
            records_of=lambda step: batching.report_examples(
                examples, training.train_batch_size, training.random_seed, step
            ),
        )
        validation = None
        if evaluate and training.eval_steps:
            validation = self._run.validation(evaluate, best_metric)
        self._run.train([schedule], validation)
        return self._run.checkpoint()

    def restore_best(self) -> None:
        """Restores the best weights of the run, if there are any."""
        training = self._training
        self.weights_step = self.step
        # At step 0 they would replace the weights of --init_checkpoint.
        if self.step and (training.eval_steps or not training.do_train):
            best = self._run.trainer.best.restore_latest()
            if best:
                for name, variable in self._run.named.items():
                    variable.assign(best.values[name])
                say(f"using the best checkpoint, of step {best.step}")
                self.weights_step = best.step

    def weights(self) -> dict:
        """Original name -> array of all current weights."""
        return {name: x.numpy() for name, x in self._run.named.items()}

    def predict(
        self, examples: Iterable[dict], batch_size: int, what: str, total: int
    ) -> Iterator[dict]:
        """Runs the model on examples, in batches of similar lengths.

        Args:
            examples: as in `data.records.example_files`; read lazily.
            batch_size: examples of a batch, over all devices.
            what: label of the progress lines.
            total: number of examples, to estimate the remaining time.

        Yields:
            the model's outputs for each example, in order; outputs [B, S] are
            cut to the length of the example.
        """
        if batch_size not in self._predictors:
            self._predictors[batch_size] = prediction.Predictor(
                self._run.model, self._run.strategy, batch_size
            )
        predictor = self._predictors[batch_size]
        lengths, choices = self._lengths, self._choices
        if predictor.is_static:
            lengths = batching.compiled_lengths(lengths)
        progress, done = Progress(what, total, "examples"), 0

        def pad(some, length):
            padded = example_files.Examples(some, {}, choices)
            return padded.batch(np.arange(len(some)), length)

        def run(batch):
            nonlocal done
            outputs = predictor(batch)
            found = next(iter(outputs.values()))
            done += len(found)
            progress.update(done)
            return [
                {name: value[i] for name, value in outputs.items()}
                for i in range(len(found))
            ]

        def length_of(example):
            ids = example[features.INPUT_IDS]
            return len(ids) if choices == 1 else max(map(len, ids))

        return batching.in_order(
            examples,
            run,
            lengths,
            batch_size,
            _WINDOW * batch_size,
            pad,
            length_of,
        )


class FineTuningTask(Protocol):
    """A task that `run` trains and evaluates.

    Attributes:
        tuning: its network.
        report: of the last evaluation, for `eval_report.write`.
    """

    tuning: FineTuningRun
    report: dict

    def train(self) -> str:
        """Trains; returns the prefix of the last checkpoint."""

    def evaluate(self) -> dict[str, float]:
        """Returns metrics of the current weights."""

    def predict(self) -> list[str]:
        """Writes the requested predictions; returns the paths."""

    def save_model(self, folder: str) -> dict[str, float] | None:
        """Writes a SavedModel; returns scores of its other files, if any."""


def run(
    tuning: finetuning_settings.FineTuning,
    task: FineTuningTask,
) -> None:
    """Trains, evaluates, predicts and exports as the settings request.

    Args:
        tuning: settings of the run.
        task: the task.
    """
    wrote, metrics = train_and_evaluate(tuning, task)
    wrote += predict_and_export(tuning, task, metrics)
    print_written(wrote)


def train_and_evaluate(
    tuning: finetuning_settings.FineTuning,
    task: FineTuningTask,
) -> tuple[list[str], dict[str, float]]:
    """The first half of `run`.

    Returns:
        the paths that were written, and the metrics, {} without --do_eval.
    """
    wrote, metrics = [], {}
    task.tuning.start()
    if tuning.training.do_train:
        wrote.append(task.train())
    task.tuning.restore_best()
    if tuning.do_eval:
        metrics = task.evaluate()
        step = task.tuning.weights_step
        folder = task.tuning.folder
        wrote += folder.write_results(step, metrics, task.report)
    return wrote, metrics


def predict_and_export(
    tuning: finetuning_settings.FineTuning,
    task: FineTuningTask,
    metrics: dict[str, float],
) -> list[str]:
    """The second half of `run`; returns the paths that were written."""

    def save(folder: str) -> None:
        scores = metrics | (task.save_model(folder) or {})
        if scores:
            export_folder.write_extra(folder, export_folder.METRICS, scores)

    wrote = task.predict()
    if tuning.export_dir and task.tuning.folder.is_chief:
        wrote.append(export_folder.write(tuning.export_dir, save))
    return wrote


def print_written(wrote: list[str]) -> None:
    """Prints the paths that were written, at the end of a script."""
    if wrote:
        print("wrote " + "\n      ".join(wrote))
