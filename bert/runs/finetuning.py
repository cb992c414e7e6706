"""Fine-tuning of any task, from its files to its export.

fit -> evaluate -> predict -> export
"""

import functools

from bert.common.errors import UserError
from bert.common.progress import Progress, log
from bert.data import batching, bucketing
from bert.data.records.examples import Examples
from bert.data.sequences import Encoded
from bert.export import folder as export_folder
from bert.modeling import checkpoints
from bert.modeling.formats import checkpoint_files, sentence_files
from bert.runs import (
    distillation,
    head_start,
    objectives,
    run_folder,
    start,
    trained_run,
)
from bert.runs.run_folder import RunFolder
from bert.runs.sweep import Result
from bert.runs.trained_run import TrainedRun
from bert.tasks.finetuning_settings import FineTuning
from bert.tasks.task import (
    TRAIN,
    Files,
    InputFile,
    Task,
)
from bert.training import distribution, workers
from bert.training.objective import Phase
from bert.training.optimization import WarmupLinearDecay
from bert.training.trainer import Trainer


def train_and_evaluate(folder: RunFolder, task: Task, files: Files) -> Result:
    """Trains, evaluates, predicts and exports, as the settings request.

    Prints the paths of written files.

    Args:
        folder: RunFolder. Folder of the run, with settings and initial model.
        task: Task. Task of the run.
        files: dict. TRAIN, DEV or TEST -> files of the run.

    Raises:
        UserError: there are too few examples for one step, the folder holds a
            run with other training data, or the weights are missing or do not
            fit.
    """
    settings, wrote = folder.settings, []
    examples, records = training_examples(folder, task, files[TRAIN])
    trainer, fresh = build_trainer(folder, task, len(examples), records)
    rows = rows_of(files[TRAIN])
    if settings.teacher:  # after the devices are chosen
        distillation.add_targets(folder, task, rows, examples)
    if settings.start_head:
        head_start.start(trainer, folder, task, rows, fresh)
    run = TrainedRun(folder, task, files, trainer)

    if settings.do_train:
        validate = run.validate if settings.eval_steps else None
        first = trainer.step
        trainer.fit([phase(settings, trainer, examples)], validate)
        wrote += [trainer.state.checkpoint] if trainer.step > first else []

    # From here on, the best weights are used.
    trainer.state.restore_best()

    metrics, report, rank, held_out = {}, {}, (), None
    if settings.do_eval or settings.fits_decision:
        metrics, report, held_out = run.evaluate()
    if settings.do_eval:
        wrote += folder.write_results(
            trainer.state.weights_step, metrics, report
        )
        objective = trainer.objective
        loss = metrics.get("eval_loss", 0.0)
        rank = objective.sign * metrics[objective.metric], -loss
    run.record_decision()
    predictions = run.predict() if settings.do_predict else []
    wrote += predictions
    if settings.export_dir and folder.is_chief:
        scores = settings.scores.metrics if settings.scores else metrics
        save = functools.partial(run.export, metrics=scores)
        wrote.append(export_folder.write(settings.export_dir, save))
    run_folder.print_written(wrote)
    step = trainer.state.weights_step
    return Result(step, metrics, report, rank, predictions, held_out)


def training_examples(
    folder: RunFolder, task: Task, files: list[InputFile]
) -> tuple[Examples, str]:
    """Tokenizes the training file, and identifies it.

    Args:
        folder, task: see `train_and_evaluate`.
        files: list of InputFile. The training file, and texts for a teacher;
            or [].

    Returns:
        The examples, none without training; and a description of them, for
        the checkpoints.

    Raises:
        UserError: the folder holds a run with other training data.
    """
    if not files:
        return Examples((), task.schema, task.sequences), ""
    rows, settings = rows_of(files), folder.settings
    sha256 = "".join(file.sha256 for file in files)
    sha256 += distillation.digest(settings.teacher)
    digest = folder.identify(sha256, settings.divides)
    progress = Progress("tokenized", task.num_examples(rows), "examples")
    lengths: list[int] = []

    def report(encoded: Encoded) -> None:
        lengths.append(encoded.num_tokens)
        progress.update(len(lengths))

    records = task.records(rows, report)
    examples = Examples(records, task.schema, task.sequences)
    paths = ", ".join(file.path for file in files)
    trained_run.log_long_texts(paths, lengths, task.max_length)
    return examples, f"{len(examples)} examples of {digest}"


def rows_of(files: list[InputFile]) -> list:
    """Returns the rows of files, in order."""
    return [row for file in files for row in file.rows]


def build_trainer(
    folder: RunFolder, task: Task, num_examples: int, records: str
) -> tuple[Trainer, list[str]]:
    """Builds the network of a task, and loads its weights.

    Args:
        folder, task: see `train_and_evaluate`.
        num_examples: int. Number of training examples; 0 without training.
        records: str. Description of the examples.

    Returns:
        the trainer, and the names of the variables with random weights.
    """
    settings, config = folder.settings, folder.config
    learning_rate = schedule(settings, num_examples)
    if folder.model.path and not folder.resumes:
        folder.model.check_sizes()
    trainer = start.build_trainer(
        folder,
        objectives.objective_of(task, config, settings, learning_rate),
        records,
        task.to_json() if task.head else None,
    )
    trainer.train_step.optimizer.rate_factors = checkpoints.rate_factors(
        trainer.state.named,
        trainer.train_step.model.trainable_variables,
        settings.layer_decay,
        config.num_hidden_layers,
    )

    # Report an invalid batch size before any weights are read.
    if settings.do_train:
        distribution.check_batch_size(
            trainer.train_step.strategy,
            settings.train_batch_size,
            "train_batch_size",
            settings.gradient_accumulation_steps,
        )

    fresh = start.restore_or_initialize(trainer, folder)
    if len(fresh) == len(trainer.state.named):
        log("warning: no --init_checkpoint: training from random weights")

    # Later predictions need the labels or the pooling beside the checkpoints.
    if settings.do_train:
        if task.head:
            checkpoint_files.write_task(folder.path, task.to_json())
        else:
            size, most = config.hidden_size, settings.max_seq_length
            sentence_files.write(folder.path, task.pooling_config, size, most)
    return trainer, fresh


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


def phase(settings: FineTuning, trainer: Trainer, examples: Examples) -> Phase:
    """Phase that trains from the first step to the last.

    Args:
        settings: FineTuning. Settings of fine-tuning.
        trainer: Trainer. Trainer of the run.
        examples: Examples. Training examples.
    """
    batch_size, seed = settings.train_batch_size, settings.random_seed
    lengths = [settings.max_seq_length]
    if settings.length_buckets:
        lengths = bucketing.bucket_lengths(settings.max_seq_length)
    # XLA compiles the step for each length, so use fewer lengths.
    if trainer.train_step.use_xla:
        lengths = bucketing.xla_lengths(lengths)

    return Phase(
        trainer.objective.num_steps,
        batch_size,
        lambda step: batching.training_batches(
            examples, lengths, batch_size, seed, step, workers.index_and_count()
        ),
        lambda step: batching.report_examples(examples, batch_size, seed, step),
    )
