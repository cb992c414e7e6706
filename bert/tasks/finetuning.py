"""Fine-tuning of any task, from its examples to its export.

This module is independent of tasks: a `training.task.Task` has the network,
the examples and the metrics.
"""

import dataclasses
import os
from typing import Any

import keras

from bert.common import storage
from bert.common.errors import UserError
from bert.common.progress import say
from bert.data import batching, length_batches
from bert.export import folder as export_folder
from bert.modeling import checkpoints, openvino_network
from bert.modeling.formats import checkpoint_files, model_card, sentence_files
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.openvino_network import Network
from bert.tasks import run_folder, start
from bert.tasks.eval_report import Result
from bert.tasks.finetuning_settings import FineTuning
from bert.tasks.run_folder import RunFolder, has_checkpoint
from bert.training import workers
from bert.training.optimization import WarmupLinearDecay
from bert.training.run import Run
from bert.training.task import Phase, Task


def work(
    settings: Any,
    model: ModelFolder,
    folder: RunFolder,
    task: Task,
) -> Result:
    """Trains, evaluates, predicts and exports, as the settings request.

    Prints the paths of written files.

    Args:
        settings: settings of the script, with `finetuning`.
        model: ModelFolder. Initial weights.
        folder: RunFolder. Folder of the run.
        task: Task. Task to train.

    Raises:
        UserError: the weights are missing, or do not fit.
    """
    wrote, rank, report = [], (), {}
    metrics = settings.scores.metrics if settings.scores else {}
    run = open_run(settings, model, folder, task)

    if settings.do_train:
        run.fit([phase(settings, task)])
        wrote.append(run.checkpoint)

    # From here on, the best weights are used.
    run.restore_best()

    if settings.do_eval:
        metrics, report = task.evaluate(run)
        wrote += folder.write_results(run.weights_step, metrics, report)
        sign = -1 if task.is_loss else 1
        rank = sign * metrics[task.metric], -metrics.get("eval_loss", 0.0)
    predictions = task.predict(run)
    wrote += predictions
    if settings.export_dir and folder.is_chief:

        def save(path):
            export(settings, model, run, path, metrics)
            write_card(settings, folder, run, path)

        wrote.append(export_folder.write(settings.export_dir, save))
    run_folder.print_written(wrote)
    return Result(run.weights_step, metrics, report, rank, predictions)


def open_run(
    settings: Any, model: ModelFolder | None, folder: RunFolder, task: Task
) -> Run:
    """Builds the network of a task, and loads its weights.

    Args:
        settings, model, folder, task: see `work`.
    """
    lengths = [settings.max_seq_length]
    if settings.length_buckets:
        lengths = length_batches.bucket_lengths(settings.max_seq_length)

    if model and model.path and not has_checkpoint(folder.shared):
        model.check_sizes()

    # Frozen before the optimizer is built, so that it has no moments for them.
    def build() -> keras.Model:
        network = task.build()
        named = checkpoints.model_variables(network)
        checkpoints.freeze_layers(named, settings.freeze_layers)
        return network

    # Without --eval_steps, do not evaluate during training.
    run = start.open_run(
        settings,
        folder,
        dataclasses.replace(
            task,
            build=build,
            validate=task.validate if settings.eval_steps else None,
        ),
        tuple(lengths),
    )
    run.steps.optimizer.rate_factors = checkpoints.rate_factors(
        run.named,
        run.steps.model.trainable_variables,
        settings.layer_decay,
        folder.config.num_hidden_layers,
    )

    # Report an invalid batch size before any weights are read.
    if settings.do_train:
        batch_size = settings.train_batch_size
        start.check_batch_size(run, "train_batch_size", batch_size)

    if start.load(run, settings, folder, model):
        say("warning: no --init_checkpoint: training from random weights")

    # Later predictions need the labels beside the checkpoints.
    if task.labels and settings.do_train:
        length = {"max_seq_length": settings.max_seq_length}
        checkpoint_files.write_task(folder.path, task.labels | length)
    if task.vectors and settings.do_train:
        size, most = folder.config.hidden_size, settings.max_seq_length
        sentence_files.write(folder.path, task.vectors, size, most)
    return run


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


def phase(settings: FineTuning, task: Task) -> Phase:
    """Phase that trains a task from its first step to its last.

    Args:
        settings: FineTuning. Settings of fine-tuning.
        task: Task. Task with `examples`.
    """
    examples = task.examples
    batch_size, seed = settings.train_batch_size, settings.random_seed

    def batches(run: Run):
        # XLA compiles the step for each length, so use fewer lengths.
        lengths = list(run.lengths)
        if run.steps.use_xla:
            lengths = length_batches.compiled_lengths(lengths)
        return batching.training_batches(
            examples, lengths, batch_size, seed, run.step, workers.share()
        )

    return Phase(
        task.learning_rate.num_train_steps,
        batch_size,
        batches,
        lambda step: batching.report_examples(examples, batch_size, seed, step),
    )


def export(
    settings: FineTuning,
    model: ModelFolder,
    run: Run,
    path: str,
    metrics: dict[str, float],
) -> None:
    """Writes an export of the weights, with their scores.

    Args:
        settings: FineTuning. Settings of fine-tuning.
        model: ModelFolder. Config and tokenizer.
        run: Run. The run.
        path: str. Empty folder to write to.
        metrics: dict. Metrics of the weights; {} if they were not evaluated.
    """
    task, length = run.task, {"max_seq_length": settings.max_seq_length}
    described = task.describe(run) if task.describe else task.labels
    tuned = ModelFolder.of(
        path,
        model.config,
        run.weights(),
        model.tokenizer.with_max_length(settings.max_seq_length),
        described and described | length,
        task.vectors,
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
        found = task.check_network(run, Network(network))
        shown = " | ".join(f"{name} {x:.4g}" for name, x in found.items())
        say(f"OpenVINO | {shown}")
        scores = scores | {f"openvino_{k}": x for k, x in found.items()}
    if scores:
        export_folder.write_extra(path, export_folder.METRICS, scores)
    if example := task.example():
        export_folder.write_extra(path, export_folder.EXAMPLE, example)


def write_card(
    settings: FineTuning,
    folder: RunFolder,
    run: Run,
    path: str,
) -> None:
    """Writes the README.md of an export, with the scores of its weights.

    Args:
        settings: FineTuning. Settings of fine-tuning.
        folder: RunFolder. Folder of the run.
        run: Run. The run.
        path: str. Folder of the export.
    """
    base = settings.init_checkpoint
    recorded = checkpoint_files.recorded_settings(folder.shared)
    model_card.write(
        path,
        os.path.basename(storage.absolute(settings.export_dir)),
        "tensorflow",
        model_card.task_of(run.named, bool(run.task.vectors)),
        settings,
        base or recorded.get("init_checkpoint"),
        model_card.read_scores(folder.path, run.weights_step)
        or settings.scores,
    )
