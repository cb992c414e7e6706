"""A fine-tuning run of any task, from its files to its export.

    check -> FineTuningRun -> start -> train -> evaluate -> predict -> export

This module knows no task: a task passes its network, examples and metrics.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from common.errors import UserError
from common.progress import Progress, say
from data import features
from data.text import vocabulary, vocabulary_checks
from modeling.config import BertConfig
from modeling.formats import model_folder
from serving import export_folder
from tasks import (
    eval_report,
    finetuning_settings,
    output_dir,
    training_run,
)

_WINDOW = 64  # batches of predictions that are sorted by length together


@dataclasses.dataclass(frozen=True)
class Setup:
    """The checked inputs of every task.

    Attributes:
        config: sizes of the network.
        vocab: token -> id.
        lengths: values of S of the batches, ascending.
    """

    config: BertConfig
    vocab: dict[str, int]
    lengths: list[int]


def check(
    tuning: finetuning_settings.FineTuning,
    config: BertConfig | None = None,
    in_graph: bool = False,
) -> Setup:
    """Checks the settings against each other and against the files.

    Args:
        tuning: the settings.
        config: used instead of --bert_config_file.
        in_graph: whether the task tokenizes in a graph, as an export does.

    Returns:
        the config, the vocabulary and the lengths of the batches.

    Raises:
        UserError: if they contradict each other.
    """
    training, model = tuning.training, tuning.training.model
    where = "the module" if config else model.bert_config_file
    config = config or BertConfig.from_json_file(model.bert_config_file)
    vocab = vocabulary.read_vocabulary(tuning.text.vocab_file)
    config.check_vocabulary(vocab, tuning.text.vocab_file, where)
    if tuning.export_dir or in_graph:
        vocabulary_checks.check_exportable(tuning.text.vocab_file, vocab)
    config.check_length(tuning.max_seq_length, "max_seq_length", where)
    if not 0 <= tuning.warmup_proportion <= 1:
        raise UserError(
            f"--warmup_proportion={tuning.warmup_proportion}",
            expected="a number from 0 to 1",
        )
    if not 0 < tuning.layer_decay <= 1:
        raise UserError(
            f"--layer_decay={tuning.layer_decay}",
            expected="a number above 0, at most 1",
        )
    if tuning.freeze_layers > config.num_hidden_layers:
        raise UserError(
            f"--freeze_layers={tuning.freeze_layers}",
            expected=f"at most num_hidden_layers, {config.num_hidden_layers} "
            f"({where})",
        )
    training.check([training.train_batch_size])
    if training.early_stopping_patience and not training.eval_steps:
        raise UserError(
            f"--early_stopping_patience={training.early_stopping_patience}",
            expected="--eval_steps, the number of steps between evaluations",
        )
    casing = tuning.text.do_lower_case, tuning.text.strip_accents
    if model.init_checkpoint:
        model_folder.check_casing(*casing, model.init_checkpoint)
        output_dir.check_beside(model.init_checkpoint, tuning.text.vocab_file)
    if output_dir.has_checkpoint(training.output_dir) and not training.do_train:
        model_folder.check_recorded_casing(*casing, training.output_dir)
    output_dir.check(training.output_dir, config, tuning.text.vocab_file)
    from data import batching

    lengths = [tuning.max_seq_length]
    if tuning.length_buckets:
        lengths = batching.bucket_lengths(tuning.max_seq_length)
    return Setup(config, vocab, lengths)


def warn_vocabulary(
    tuning: finetuning_settings.FineTuning, setup: Setup, texts: Iterable[str]
) -> None:
    """Warns if the vocabulary seems not to match the network or the texts.

    Args:
        tuning: the settings.
        setup: from `check`.
        texts: texts of the examples; the first thousand are tokenized.
    """
    model_folder.warn_vocabulary(
        *tuning.text.tokenizer_arguments,
        setup.config,
        tuning.training.model.bert_config_file,
        texts,
    )


def requested_files(script_settings) -> dict[str, str]:
    """Flag -> path of the files that the settings require.

    Args:
        script_settings: with `tuning`, `train_file`, `eval_file` and
            `predict_file`.

    Raises:
        UserError: if there is nothing to do, or a flag is missing.
    """
    tuning = script_settings.tuning
    training = tuning.training
    requested = {
        "train_file": training.do_train,
        "eval_file": tuning.evaluates,
        "predict_file": tuning.do_predict,
    }
    names = [name for name, needed in requested.items() if needed]
    check_requested(tuning, names)
    for name in names:
        if not getattr(script_settings, name):
            raise UserError(f"no --{name}", fix="name the file")
    return {name: getattr(script_settings, name) for name in names}


def check_requested(tuning: finetuning_settings.FineTuning, requested) -> None:
    """Checks that there is something to do, and that an export can be written.

    Args:
        tuning: the settings.
        requested: true if files are to be read.

    Raises:
        UserError: if there is nothing to do, or --export_dir exists.
    """
    if not requested and not tuning.export_dir:
        raise UserError(
            "nothing to do",
            fix="pass --do_train, --do_eval, --do_predict or --export_dir",
        )
    export_folder.check(tuning.export_dir)


class FineTuningRun:
    """Training and inference with the network of a task.

    Args:
        everything: settings of the script.
        setup: from `check`.
        task: the network to train, and its losses.
        num_examples: examples of training; 0 if nothing is trained.
        choices: sequences of an example.

    Attributes:
        weights_step: training step of the current weights.
        num_train_steps: as in the original: examples / batch * epochs.
    """

    def __init__(
        self,
        everything,
        setup: Setup,
        task: training_run.TrainingTask,
        num_examples: int = 0,
        choices: int = 1,
    ):
        from modeling import checkpoints, layer_decay

        self._tuning = tuning = everything.tuning
        self._training = training = tuning.training
        self._setup, self._choices = setup, choices
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
            everything,
            training,
            setup.config,
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
            setup.config.num_hidden_layers,
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

    def start(self, weights: dict | None = None, path: str = "") -> None:
        """Loads the initial weights and prepares output_dir.

        Args:
            weights, path: see `training_run.TrainingRun.start`.

        Raises:
            UserError: as there, or the run is past its last step.
        """
        if self._run.start(weights, path):
            say("warning: no --init_checkpoint: training from random weights")
        if self._training.do_train:
            output_dir.check_steps(
                self._training.output_dir, self.step, self._run.learning_rate
            )
        output_dir.prepare(
            self._training.output_dir,
            self._setup.config,
            self._tuning.text.vocab_file,
        )

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
        from data import batching
        from training import workers

        tuning, training = self._tuning, self._training
        if not self.num_train_steps:
            raise UserError(
                f"{self._num_examples} examples, "
                f"--train_batch_size={training.train_batch_size}, "
                f"--num_train_epochs={tuning.num_train_epochs}",
                expected="enough for one step",
            )
        lengths = self._setup.lengths
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
        self._run.trainer.train([schedule], validation, training.seconds)
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
        import numpy as np

        from data import batching
        from data.records import example_files
        from training import prediction

        if batch_size not in self._predictors:
            self._predictors[batch_size] = prediction.Predictor(
                self._run.model, self._run.strategy, batch_size
            )
        predictor = self._predictors[batch_size]
        lengths, choices = self._setup.lengths, self._choices
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

    def start(self) -> None:
        """Loads the initial weights and prepares output_dir."""

    def train(self) -> str:
        """Trains; returns the prefix of the last checkpoint."""

    def evaluate(self) -> dict[str, float]:
        """Returns metrics of the current weights."""

    def predict(self) -> list[str]:
        """Writes the requested predictions; returns the paths."""

    def save_model(self, folder: str) -> None:
        """Writes a SavedModel."""


def run(
    tuning: finetuning_settings.FineTuning, task: FineTuningTask
) -> list[str]:
    """Trains, evaluates, predicts and exports as the settings request.

    Args:
        tuning: settings of the run.
        task: the task.

    Returns:
        the paths that were written.
    """
    wrote, _ = train_and_evaluate(tuning, task)
    return wrote + predict_and_export(tuning, task)


def train_and_evaluate(
    tuning: finetuning_settings.FineTuning, task: FineTuningTask
) -> tuple[list[str], dict[str, float]]:
    """The first half of `run`.

    Returns:
        the paths that were written, and the metrics, {} without --do_eval.
    """
    wrote, metrics = [], {}
    task.start()
    if tuning.training.do_train:
        wrote.append(task.train())
    task.tuning.restore_best()
    if tuning.do_eval:
        metrics = task.evaluate()
        folder = tuning.training.output_dir
        wrote += [
            output_dir.write_results(
                folder,
                task.tuning.weights_step,
                metrics,
                task.report.get("references"),
            ),
            eval_report.write(folder, metrics, task.report),
        ]
    return wrote, metrics


def predict_and_export(
    tuning: finetuning_settings.FineTuning, task: FineTuningTask
) -> list[str]:
    """The second half of `run`; returns the paths that were written."""
    wrote = task.predict()
    if tuning.export_dir:
        wrote.append(export_folder.write(tuning.export_dir, task.save_model))
    return wrote


def print_written(wrote: list[str]) -> None:
    """Prints the paths that were written, at the end of a script."""
    if wrote:
        print("wrote " + "\n      ".join(wrote))
