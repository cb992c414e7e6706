"""Fine-tuning of any task, from its files to its export.

training data -> recipe -> trainer -> fit -> evaluate -> predict -> export
"""

import functools
import hashlib
import os
from typing import NamedTuple

import keras

from bert.common import storage
from bert.common.errors import UserError
from bert.common.progress import Progress, log
from bert.data import batching, bucketing
from bert.data.bucketing import BatchLengths
from bert.data.records.examples import Examples
from bert.data.sequences import Encoded
from bert.data.tables import InputFile
from bert.export import folder as export_folder
from bert.inference import teacher_outputs
from bert.modeling import fused_ops
from bert.modeling.formats import checkpoint_files, sentence_files
from bert.runs import (
    exporting,
    file_results,
    head_start,
    objectives,
    scoring,
    start,
    written_files,
)
from bert.runs.file_results import FileResults
from bert.runs.scoring import Scored
from bert.runs.sweep import RunSummary
from bert.tasks import recipe
from bert.tasks.finetuning_settings import FineTuning, FineTuningT, teacher_of
from bert.tasks.run import Run
from bert.tasks.task import DEV, TEST, TRAIN, Files, Task
from bert.training import distribution, training_loop, workers
from bert.training.objective import Phase
from bert.training.optimization import WarmupLinearDecay
from bert.training.trainer import Trainer


def train_and_evaluate(
    opened: Run[FineTuningT], task: Task, files: Files
) -> RunSummary:
    """Trains, evaluates, predicts and exports, as the settings request.

    Prints the paths of written files.

    Args:
        opened: Run. The run.
        task: Task. Task of the run.
        files: dict. TRAIN, DEV or TEST -> files of the run.

    Raises:
        UserError: there are too few examples for one step, the folder holds a
            run with other training data, or the weights are missing or do not
            fit.
    """
    data = training_data(opened, task, files[TRAIN])
    devices = checked_devices(opened)
    with devices.scope():
        network = objectives.build_network(task, opened.config, opened.settings)
    # The training rows decide on the number of epochs and the first head.
    head = head_start.fit(opened, task, data.rows, network, devices)
    run = head_start.with_recipe(
        opened,
        task,
        len(data.examples),
        head,
        devices.strategy.num_replicas_in_sync,
    )
    settings, wrote, scored = run.settings, list[str](), Scored(task)
    lengths = batch_lengths(run, data.examples, devices)
    trainer = make_trainer(run, task, data, network, devices, lengths)
    head_start.add(run, task, head, trainer)
    examples = teacher_outputs.with_targets(run, task, data.rows, data.examples)
    computed = FileResults(task, trainer, settings)

    def validate() -> dict[str, float]:
        found = scoring.score(task, files[DEV][0], computed)
        return scoring.metrics_of(task, files[DEV][0], found, settings)

    if lengths:
        first = trainer.step
        phases = [phase(settings, trainer, examples, lengths)]
        training_loop.fit(
            trainer, phases, validate if settings.eval_steps else None
        )
        wrote += [trainer.checkpoint] if trainer.step > first else []

    # From here on, the best weights are used.
    trainer.restore_best()
    step = trainer.weights_step
    if settings.do_eval or settings.fits_decision:
        scored = scoring.evaluate(run, task, files, computed, trainer)
    if settings.do_eval:
        wrote += written_files.write_results(
            run.output_folder, step, scored.metrics, scored.report
        )
    scoring.record_decision(run, scored.task, step)

    predictions = predict(run, scored, files[TEST], computed)
    wrote += predictions

    if settings.export_dir and run.output_folder.is_chief:
        save = functools.partial(
            exporting.export,
            name=os.path.basename(storage.absolute(settings.export_dir)),
            run=run,
            files=files,
            scored=scored,
            computed=computed,
            trainer=trainer,
        )
        wrote.append(export_folder.write(settings.export_dir, save))
    written_files.print_written(wrote)
    return RunSummary(
        step,
        scored.metrics,
        scored.report,
        rank_of(trainer, scored.metrics) if settings.do_eval else (),
        predictions,
        scored.held_out,
    )


class TrainingData(NamedTuple):
    """Training rows and their examples; none if the run does not train.

    Attributes:
        rows: list. Rows of the training file, and of texts for a teacher.
        examples: Examples. The examples of the rows, tokenized.
        digest: str. Number and hash of the examples, for checkpoints.
    """

    rows: list
    examples: Examples
    digest: str


def training_data(
    run: Run[FineTuningT], task: Task, files: list[InputFile]
) -> TrainingData:
    """Tokenizes the training file, and identifies it.

    Args:
        run: Run. The run.
        task: Task. Task of the run.
        files: list of InputFile. The training file, and texts for a teacher;
            or [].

    Raises:
        UserError: the folder holds a run with other training data.
    """
    rows = [row for file in files for row in file.rows]
    if not files:
        nothing = Examples((), task.schema, task.sequences)
        return TrainingData(rows, nothing, "")
    sha256 = "".join(file.sha256 for file in files)
    digest = _identify(run, sha256 + teacher_outputs.digest(run.settings))
    progress = Progress("tokenized", task.num_examples(rows), "examples")
    lengths: list[int] = []

    def report(encoded: Encoded) -> None:
        lengths.append(encoded.num_tokens)
        progress.update(len(lengths))

    records = task.records(rows, report)
    examples = Examples(records, task.schema, task.sequences)
    paths = ", ".join(file.path for file in files)
    file_results.log_long_texts(paths, lengths, task.max_length)
    return TrainingData(rows, examples, f"{len(examples)} examples of {digest}")


def _identify(run: Run[FineTuningT], sha256: str) -> str:
    """Identifies the training data, and checks that a run had the same.

    Args:
        run: Run. The run.
        sha256: str. SHA-256 hashes of the files, in hex.

    Returns:
        str. Part of a SHA-256 hash of the data.

    Raises:
        UserError: the folder contains a run with other training data.
    """
    settings, path = run.settings, run.output_folder.shared
    content = (sha256 + settings.division).encode()
    digest = hashlib.sha256(content).hexdigest()[:16]

    # Compare only the digest, which is the end of a description.
    recorded = run.resumed.recorded if run.resumed else {}
    if not str(recorded.get("records", digest)).endswith(digest):
        # Weights that may have seen the held-out rows are not advised.
        advice = f", with --init_checkpoint={path} to start from its weights"
        raise UserError(
            "holds a run with other training data"
            + " or another --teacher" * bool(teacher_of(settings)),
            path=path,
            fix="pass another --output_dir" + advice * (not settings.divides),
        )
    return digest


def checked_devices(run: Run[FineTuningT]) -> start.ChosenDevices:
    """Chooses the devices; checks the run before any weights are read.

    Args:
        run: Run. The run.

    Raises:
        UserError: a device does not exist, or the weights do not fit the
            config.
    """
    if run.model.path and not run.resumed:
        run.model.check_sizes()
    return start.choose_devices(run.settings)


def batch_lengths(
    run: Run[FineTuningT], examples: Examples, devices: start.ChosenDevices
) -> BatchLengths | None:
    """Returns the lengths that batches are padded to; None without training.

    Args:
        run: Run. The run, with the batch size of its recipe.
        examples: Examples. Training examples.
        devices: ChosenDevices. The devices.

    Raises:
        UserError: a batch does not divide evenly over the devices.
    """
    settings = run.settings
    if not (settings.do_train and len(examples)):
        return None
    distribution.check_batch_size(
        devices.strategy,
        settings.train_batch_size,
        "train_batch_size",
        settings.gradient_accumulation_steps,
    )
    if not settings.length_buckets:
        return BatchLengths([settings.max_seq_length], may_fuse=True)
    lengths = bucketing.bucket_lengths(settings.max_seq_length)
    # XLA compiles the step for each length, so use fewer lengths.
    if devices.use_xla:
        lengths = bucketing.xla_lengths(lengths)
    if not fused_ops.can_fuse(run.config, devices.use_xla):
        return BatchLengths(lengths, may_fuse=False)
    return batching.fastest_lengths(
        examples,
        lengths,
        settings.train_batch_size,
        run.config.operations_per_token,
    )


def make_trainer(
    run: Run[FineTuningT],
    task: Task,
    data: TrainingData,
    network: keras.Model,
    devices: start.ChosenDevices,
    lengths: BatchLengths | None,
) -> Trainer:
    """Makes the trainer of a network, and loads its weights.

    Args:
        run, task: see `training_data`.
        data: TrainingData. The training examples.
        network: keras.Model. The network of the task.
        devices: ChosenDevices. The devices.
        lengths: BatchLengths or None. Result of `batch_lengths`.
    """
    settings, config = run.settings, run.config
    schedule = schedule_of(settings, len(data.examples))
    trainer = start.build_trainer(
        run,
        devices,
        network,
        objectives.objective_of(task, config, settings, schedule),
        data.digest,
        task.to_json() if task.head else None,
        settings.layer_decay,
        lengths,
    )

    fresh = start.restore_or_initialize(trainer, run)
    if len(fresh) == len(trainer.named):
        log("warning: no --init_checkpoint: training from random weights")

    # Later predictions need the labels or the pooling beside the checkpoints.
    if settings.do_train:
        path = run.output_folder.path
        if task.pooling_config:
            size, most = config.hidden_size, settings.max_seq_length
            sentence_files.write(path, task.pooling_config, size, most)
        else:
            checkpoint_files.write_task(path, task.to_json())
    return trainer


def predict(
    run: Run[FineTuningT],
    scored: Scored,
    files: list[InputFile],
    computed: FileResults,
) -> list[str]:
    """Writes the predictions for files; returns the paths that are written.

    Args:
        run: Run. The run.
        scored: Scored. Its task, and results that are known.
        files: list of InputFile. The files.
        computed: FileResults. Results of the files.
    """
    wrote = []
    for file in files:
        if file in scored.results:
            encoded = computed.encoded(file)
            found = encoded, scored.results[file]
        else:
            found = computed.predicted(file)
        wrote += scored.task.write_predictions(
            run.output_folder.path, file, *found, run.settings
        )
    return wrote


def rank_of(trainer: Trainer, metrics: dict[str, float]) -> tuple[float, ...]:
    """Rank of a run among several: the best one has the highest.

    Args:
        trainer: Trainer. Trainer of the run.
        metrics: dict. Metric -> value.
    """
    objective, loss = trainer.objective, metrics.get("eval_loss", 0.0)
    return objective.sign * metrics[objective.metric], -loss


def schedule_of(settings: FineTuning, num_examples: int) -> WarmupLinearDecay:
    """Learning-rate schedule; steps are counted as in the original.

    Args:
        settings: FineTuning. Settings of fine-tuning.
        num_examples: int. Number of training examples; 0 without training.

    Raises:
        UserError: there are too few examples for one step.
    """
    epochs = settings.num_train_epochs
    batch_size = settings.train_batch_size
    num_steps = recipe.num_steps(num_examples, batch_size, epochs)
    if settings.do_train and not num_steps:
        raise UserError(
            f"{num_examples} examples, --train_batch_size={batch_size}, "
            f"--num_train_epochs={epochs}",
            expected="enough for one step",
        )

    # A run that only evaluates takes no step, but needs a schedule too.
    warmup = int(num_steps * settings.warmup_proportion)
    return WarmupLinearDecay(settings.learning_rate, max(1, num_steps), warmup)


def phase(
    settings: FineTuning,
    trainer: Trainer,
    examples: Examples,
    lengths: BatchLengths,
) -> Phase:
    """Phase that trains from the first step to the last.

    Args:
        settings: FineTuning. Settings of fine-tuning.
        trainer: Trainer. Trainer of the run.
        examples: Examples. Training examples.
        lengths: BatchLengths. Result of `batch_lengths`.
    """
    batch_size, seed = settings.train_batch_size, settings.random_seed
    return Phase(
        trainer.objective.num_steps,
        batch_size,
        lambda step: batching.training_batches(
            examples,
            lengths.allowed,
            batch_size,
            seed,
            step,
            workers.index_and_count(),
        ),
        lambda step: batching.report_examples(examples, batch_size, seed, step),
    )
