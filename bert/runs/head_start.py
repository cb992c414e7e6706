"""First weights of a classifier's head, from the frozen encoder.

They are computed before the first step, and stored in the folder of the run: an
evaluation compares the run with them (the baseline `frozen`).
"""

import os

import numpy as np

from bert.common import storage
from bert.common.formats import array_files
from bert.common.progress import log
from bert.inference import frozen_features
from bert.modeling.task_heads import HEADS
from bert.tasks.classification.recipe import RecipeFlags
from bert.tasks.classification.task import TextClassification
from bert.tasks.finetuning_settings import FineTuning, FineTuningT
from bert.tasks.run import Run
from bert.tasks.task import Task
from bert.training.trainer import Trainer

FILE = "start_head.npy"


def start(
    run: Run[FineTuningT],
    task: Task,
    rows: list,
    trainer: Trainer,
    fresh: list[str],
) -> None:
    """Adds a linear model of frozen features to a new head, if --start_head.

    Args:
        run: Run. The run.
        task: Task. Task of the run.
        rows: list. Training rows.
        trainer: Trainer. Trainer of the run.
        fresh: list of str. Variables with random weights. A head that was
            trained before, and a network with random weights, are not changed.
    """
    if not _is_requested(run.settings):
        return
    assert isinstance(task, TextClassification)
    is_new = f"{HEADS[task.head].scope}output_weights" in fresh
    if not is_new or len(fresh) == len(trainer.state.named):
        return
    step = trainer.train_step
    found = frozen_features.start_head(step.model, task, rows, step.strategy)
    if found is not None and run.folder.is_chief:
        array_files.write(os.path.join(run.folder.shared, FILE), found)


def read(run: Run[FineTuningT]) -> np.ndarray | None:
    """Reads the linear model that a run's head was started with, [C, H + 1]."""
    path = os.path.join(run.folder.shared, FILE)
    if not (_is_requested(run.settings) and storage.exists(path)):
        return None
    found = array_files.read(path)
    if found is None:
        log(f"warning: {path} is damaged: there is no baseline `frozen`")
    return found


def _is_requested(settings: FineTuning) -> bool:
    return isinstance(settings, RecipeFlags) and settings.start_head


def assign(trainer: Trainer, task: Task, head: np.ndarray) -> None:
    """Assigns float32 [C, H + 1], W and b, to the head of a network."""
    layer = trainer.train_step.model.get_layer(task.head)
    layer.output_weights.assign(head[:, :-1])
    layer.output_bias.assign(head[:, -1])
