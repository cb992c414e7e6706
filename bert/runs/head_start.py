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
from bert.runs.run_folder import RunFolder
from bert.tasks.classification.task import TextClassification
from bert.tasks.task import Task
from bert.training.trainer import Trainer

FILE = "start_head.npy"


def start(
    trainer: Trainer,
    folder: RunFolder,
    task: Task,
    rows: list,
    fresh: list[str],
) -> None:
    """Adds a linear model of frozen features to the head of a new run.

    Args:
        trainer: Trainer. Trainer of the run.
        folder: RunFolder. Folder of the run.
        task: Task. The `TextClassification` of the run.
        rows: list. Training rows.
        fresh: list of str. Variables with random weights. A head that was
            trained before, and a network with random weights, are not changed.
    """
    assert isinstance(task, TextClassification)
    is_new = f"{HEADS[task.head].scope}output_weights" in fresh
    if not is_new or len(fresh) == len(trainer.state.named):
        return
    step = trainer.train_step
    found = frozen_features.start_head(step.model, task, rows, step.strategy)
    if found is not None and folder.is_chief:
        array_files.write(os.path.join(folder.shared, FILE), found)


def read(folder: RunFolder) -> np.ndarray | None:
    """Reads the linear model that a run's head was started with, [C, H + 1]."""
    path = os.path.join(folder.shared, FILE)
    if not storage.exists(path):
        return None
    found = array_files.read(path)
    if found is None:
        log(f"warning: {path} is damaged: there is no baseline `frozen`")
    return found


def assign(trainer: Trainer, task: Task, head: np.ndarray) -> None:
    """Assigns float32 [C, H + 1], W and b, to the head of a network."""
    layer = trainer.train_step.model.get_layer(task.head)
    layer.output_weights.assign(head[:, :-1])
    layer.output_bias.assign(head[:, -1])
