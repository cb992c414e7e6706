"""Fine-tuning of any task, from its examples to its export.

This module is independent of tasks: a `training.task.Task` has the network,
the examples and the metrics.
"""

import dataclasses
import os

import keras

from bert.common import storage
from bert.common.errors import UserError
from bert.common.progress import log
from bert.data import batching, bucketing
from bert.data.records.examples import Examples
from bert.export import folder as export_folder
from bert.modeling import checkpoints, openvino_network
from bert.modeling.formats import checkpoint_files, model_card, sentence_files
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.openvino_network import Network
from bert.tasks import run_folder, start
from bert.tasks.eval_report import Result
from bert.tasks.finetuning_settings import FineTuning
from bert.tasks.run_folder import RunFolder
from bert.training import distribution, workers
from bert.training.optimization import WarmupLinearDecay
from bert.training.task import Phase, Task
from bert.training.trainer import Trainer


def train_and_evaluate(folder: RunFolder, task: Task) -> Result:
    """Trains, evaluates, predicts and exports, as the settings request.

    Prints the paths of written files.

    Args:
        folder: RunFolder. Folder of the run, with settings and initial model.
        task: Task. Task to train.

    Raises:
        UserError: the weights are missing, or do not fit.
    """
    settings = folder.settings
    wrote, rank, report = [], (), {}
    metrics = settings.scores.metrics if settings.scores else {}
    trainer = build_trainer(folder, task)

    if settings.do_train:
        trainer.fit([phase(settings, task)])
        wrote.append(trainer.checkpoint)

    # From here on, the best weights are used.
    trainer.restore_best()

    if settings.do_eval:
        metrics, report = task.evaluate(trainer)
        wrote += folder.write_results(trainer.weights_step, metrics, report)
        sign = -1 if task.is_loss else 1
        rank = sign * metrics[task.metric], -metrics.get("eval_loss", 0.0)
    predictions = task.predict(trainer)
    wrote += predictions
    if settings.export_dir and folder.is_chief:

        def save(path):
            export(folder, trainer, path, metrics)
            write_card(folder, trainer, path)

        wrote.append(export_folder.write(settings.export_dir, save))
    run_folder.print_written(wrote)
    return Result(trainer.weights_step, metrics, report, rank, predictions)


def build_trainer(folder: RunFolder, task: Task) -> Trainer:
    """Builds the network of a task, and loads its weights.

    Args:
        folder, task: see `train_and_evaluate`.
    """
    settings = folder.settings
    lengths = [settings.max_seq_length]
    if settings.length_buckets:
        lengths = bucketing.bucket_lengths(settings.max_seq_length)

    if folder.model.path and not folder.resumes:
        folder.model.check_sizes()

    # Frozen before the optimizer is built, so that it has no moments for them.
    def build() -> keras.Model:
        network = task.build()
        named = checkpoints.model_variables(network)
        checkpoints.freeze_layers(named, settings.freeze_layers)
        return network

    # Without --eval_steps, do not evaluate during training.
    trainer = start.build_trainer(
        folder,
        dataclasses.replace(
            task,
            build=build,
            validate=task.validate if settings.eval_steps else None,
        ),
        tuple(lengths),
    )
    trainer.train_step.optimizer.rate_factors = checkpoints.rate_factors(
        trainer.named,
        trainer.train_step.model.trainable_variables,
        settings.layer_decay,
        folder.config.num_hidden_layers,
    )

    # Report an invalid batch size before any weights are read.
    if settings.do_train:
        distribution.check_batch_size(
            trainer.train_step.strategy,
            settings.train_batch_size,
            "train_batch_size",
            settings.gradient_accumulation_steps,
        )

    if start.restore_or_initialize(trainer, folder):
        log("warning: no --init_checkpoint: training from random weights")

    # Later predictions need the labels beside the checkpoints.
    if task.labels and settings.do_train:
        length = {"max_seq_length": settings.max_seq_length}
        checkpoint_files.write_task(folder.path, task.labels | length)
    if task.pooling_config and settings.do_train:
        size, most = folder.config.hidden_size, settings.max_seq_length
        sentence_files.write(folder.path, task.pooling_config, size, most)
    return trainer


def schedule(settings: FineTuning, num_examples: int) -> WarmupLinearDecay:
    """Learning-rate schedule; steps are counted as in the original.

    Args:
        settings: FineTuning. Settings of fine-tuning.
        num_examples: int. Number of training examples; 0 without training.

    Raises:
        UserError: there are too few examples for one step.
    """
    epochs = settings.num_train_epochs
    batch_size = settings.train_batch_size
    steps = int(num_examples / batch_size * epochs)
    if settings.do_train and not steps:
        raise UserError(
            f"{num_examples} examples, --train_batch_size={batch_size}, "
            f"--num_train_epochs={epochs}",
            expected="enough for one step",
        )

    # A run that only evaluates takes no step, but needs a schedule too.
    warmup = int(steps * settings.warmup_proportion)
    return WarmupLinearDecay(settings.learning_rate, max(1, steps), warmup)


def describe(examples: Examples | None, digest: str) -> str:
    """Describes the data that a run has trained on, for its checkpoints.

    Args:
        examples: Examples or None. Training examples.
        digest: str. See `RunFolder.identify`.
    """
    return f"{len(examples or ())} examples of {digest}"


def phase(settings: FineTuning, task: Task) -> Phase:
    """Phase that trains a task from its first step to its last.

    Args:
        settings: FineTuning. Settings of fine-tuning.
        task: Task. Task with `examples`.
    """
    examples = task.examples
    batch_size, seed = settings.train_batch_size, settings.random_seed

    def batches(trainer: Trainer):
        # XLA compiles the step for each length, so use fewer lengths.
        lengths = list(trainer.lengths)
        if trainer.train_step.use_xla:
            lengths = bucketing.xla_lengths(lengths)
        return batching.training_batches(
            examples,
            lengths,
            batch_size,
            seed,
            trainer.step,
            workers.index_and_count(),
        )

    return Phase(
        task.learning_rate.num_train_steps,
        batch_size,
        batches,
        lambda step: batching.report_examples(examples, batch_size, seed, step),
    )


def export(
    folder: RunFolder,
    trainer: Trainer,
    path: str,
    metrics: dict[str, float],
) -> None:
    """Writes an export of the weights, with their scores.

    Args:
        folder: RunFolder. Folder of the run.
        trainer: Trainer. Trainer of the run.
        path: str. Empty folder to write to.
        metrics: dict. Metrics of the weights; {} if they were not evaluated.
    """
    settings, model = folder.settings, folder.model
    task, length = trainer.task, {"max_seq_length": settings.max_seq_length}
    described = task.describe(trainer) if task.describe else task.labels
    tuned = ModelFolder.of(
        path,
        model.config,
        trainer.weights(),
        model.tokenizer.with_max_length(settings.max_seq_length),
        described and described | length,
        task.pooling_config,
    )
    export_folder.write_model(
        path,
        tuned,
        settings.export_precision,
        settings.export_openvino,
        task.sample() if settings.export_openvino == "int8" else (),
    )

    # Another precision may predict differently, so it is evaluated too.
    scores, network = metrics, openvino_network.find(path)
    if network and settings.do_eval and task.check_network:
        found = task.check_network(trainer, Network(network))
        shown = " | ".join(f"{name} {x:.4g}" for name, x in found.items())
        log(f"OpenVINO | {shown}")
        scores = scores | {f"openvino_{k}": x for k, x in found.items()}
    if scores:
        export_folder.write_extra(path, export_folder.METRICS, scores)
    if example := task.example():
        export_folder.write_extra(path, export_folder.EXAMPLE, example)


def write_card(
    folder: RunFolder,
    trainer: Trainer,
    path: str,
) -> None:
    """Writes the README.md of an export, with the scores of its weights.

    Args:
        folder: RunFolder. Folder of the run.
        trainer: Trainer. Trainer of the run.
        path: str. Folder of the export.
    """
    settings = folder.settings
    model_card.write(
        path,
        os.path.basename(storage.absolute(settings.export_dir)),
        "tensorflow",
        model_card.task_of(trainer.named, bool(trainer.task.pooling_config)),
        settings,
        settings.init_checkpoint or folder.recorded.get("init_checkpoint"),
        model_card.read_scores(folder.path, trainer.weights_step)
        or settings.scores,
    )
