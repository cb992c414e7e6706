"""Scores of the weights of a run, beside their baselines."""

import dataclasses

from numpy.typing import NDArray

from bert.common.formats.json_files import Json
from bert.common.progress import log
from bert.data.pooling import PoolingConfig
from bert.data.tables import InputFile
from bert.inference import frozen_features
from bert.modeling import checkpoints
from bert.modeling.engines.openvino_engine import OpenVINOEngine
from bert.modeling.formats import checkpoint_files
from bert.runs import head_start, opening
from bert.runs.file_results import FileResults
from bert.runs.sweep import HeldOut
from bert.tasks.classification.task import TextClassification
from bert.tasks.evaluation import BEFORE, FROZEN
from bert.tasks.finetuning_settings import FineTuning, FineTuningT
from bert.tasks.run import Run
from bert.tasks.task import DEV, TEST, TRAIN, Evaluation, Files, Task
from bert.training.trainer import Trainer


@dataclasses.dataclass(frozen=True)
class Scored:
    """Scores of the evaluation files of a run.

    Attributes:
        task: Task. The task, with the post-processing that was fitted.
        metrics: dict. Metric -> value, of all files. Default: {}, without an
            evaluation.
        report: dict. Other values of `eval_report.json`. Default: {}.
        held_out: HeldOut or None. The evaluated rows of a fold, for tasks
            whose folds are joined. Default: None.
        results: dict. File that is also predicted -> its results. Default: {}.
    """

    task: Task
    metrics: dict[str, float] = dataclasses.field(default_factory=dict)
    report: dict[str, Json] = dataclasses.field(default_factory=dict)
    held_out: HeldOut | None = None
    results: dict[InputFile, list] = dataclasses.field(default_factory=dict)


def evaluate(
    run: Run[FineTuningT],
    task: Task,
    files: Files,
    computed: FileResults,
    trainer: Trainer,
) -> Scored:
    """Scores all evaluation files, with the post-processing that is fitted.

    Args:
        run: Run. The run.
        task: Task. Task of the run.
        files: dict. TRAIN, DEV or TEST -> files of the run.
        computed: FileResults. Results of the files.
        trainer: Trainer. Trainer of the run.
    """
    settings, (file, *others) = run.settings, files[DEV]
    encoded, results = computed.encoded(file), computed.evaluated(file)
    if settings.fits_decision:
        task, evaluation = task.fit_decision(
            file.rows, encoded, results, settings
        )
    else:
        evaluation = task.score(file.rows, encoded, results)
    metrics = metrics_of(task, file, evaluation, settings)
    for other in others:  # with the post-processing of the first file
        found = score(task, other, computed)
        metrics |= metrics_of(task, other, found, settings)
    for warning in evaluation.warnings:
        log(f"warning: {file.path}: {warning}")

    report: dict = {"task": task.name, "records": file.path}
    report |= {"rows": file.part} if file.part else {}
    references = _baselines(run, task, files, computed, trainer)
    report |= {"references": references, **evaluation.report}
    if evaluation.warnings:
        report["warnings"] = evaluation.warnings
    held_out = None
    if settings.fold and task.joins_folds:
        held_out = HeldOut(task, file.rows, encoded, results)
    kept = {file: results} if file in files[TEST] else {}
    return Scored(task, metrics, report, held_out, kept)


def score(
    task: Task,
    file: InputFile,
    computed: FileResults,
    engine: OpenVINOEngine | None = None,
) -> Evaluation:
    """Scores an evaluation file.

    Args:
        task: Task. Task of the run, with its post-processing.
        file, engine: see `FileResults.evaluated`.
        computed: FileResults. Results of the files.
    """
    results = computed.evaluated(file, engine)
    return task.score(file.rows, computed.encoded(file), results)


def metrics_of(
    task: Task, file: InputFile, evaluation: Evaluation, settings: FineTuning
) -> dict[str, float]:
    """Names the metrics of a file as the original does.

    Args:
        task: Task. Task of the run.
        file: InputFile. The file.
        evaluation: Evaluation. Its scores.
        settings: FineTuning. Settings of the script.
    """
    # A second file, such as mismatched, has a prefix.
    subset = f"{file.subset}_" if file.subset else ""
    prefix = f"{task.prefix}{subset}"
    found = {f"{prefix}{k}": x for k, x in evaluation.metrics.items()}
    if evaluation.losses is not None and not subset:
        # As in Estimator: the mean over the batches.
        losses, size = evaluation.losses, settings.eval_batch_size
        starts = range(0, len(losses), size)
        means = [float(losses[i : i + size].mean()) for i in starts]
        found["loss"] = sum(means) / len(means)
    return found


def _baselines(
    run: Run[FineTuningT],
    task: Task,
    files: Files,
    computed: FileResults,
    trainer: Trainer,
) -> dict[str, float]:
    """Scores of the baselines: "metric/kind" -> value."""
    settings, file = run.settings, files[DEV][0]
    train = [*files[TRAIN], file][0].rows
    encoded = computed.encoded(file)
    found = task.baselines(file.rows, encoded, train, settings)

    # The weights before training.
    model, named = run.model, trainer.named
    head = head_start.read(run)
    compares = task.compares_before or head is not None
    is_other = model.path not in ("", run.output_folder.shared)
    if settings.do_train and compares and is_other:
        trained = trainer.weights()
        first = checkpoints.without_other_heads(model.weights()[0], named)
        checkpoints.assign(named, first, model.path)
        found |= _of_first_weights(run, task, file, computed, trainer, head)
        checkpoints.assign(named, trained, run.output_folder.path)
    return {f"{task.prefix}{k}": x for k, x in found.items()}


def _of_first_weights(
    run: Run[FineTuningT],
    task: Task,
    file: InputFile,
    computed: FileResults,
    trainer: Trainer,
    head: NDArray | None,
) -> dict[str, float]:
    """Scores of the weights before training, which the trainer has now."""
    kind, found, network = BEFORE, dict[str, float](), trainer.train_step.model
    pooling = run.model.pooling_config
    if head is not None:
        assert task.head
        kind = FROZEN
        frozen_features.set_head(network, task.head, head)
        if isinstance(task, TextClassification):
            found = frozen_features.cosines(
                checkpoints.encoder_of(network),
                task,
                file.rows,
                PoolingConfig() if not pooling or pooling.mistake else pooling,
                trainer.train_step.strategy,
            )
    metrics = task.compared(score(task, file, computed).metrics)
    return found | {f"{k}/{kind}": x for k, x in metrics.items()}


def record_decision(run: Run[FineTuningT], task: Task, step: int) -> None:
    """Writes the post-processing to the `task.json` of the weights.

    Args:
        run: Run. The run.
        task: Task. Its task, with the post-processing.
        step: int. Training step of the weights.
    """
    folder, settings = run.output_folder, run.settings
    is_writer = folder.is_chief and opening.has_checkpoint(folder.path)
    if not (settings.changes_decision and is_writer):
        return
    task_json = task.to_json()
    if settings.fits_decision:
        task_json |= {checkpoint_files.TUNED_STEP: step}
    checkpoint_files.write_task(folder.path, task_json)
