"""First weights of a classifier's head, from the frozen encoder.

They are computed before the first step, and stored in the folder of the run: an
evaluation compares the run with them (the baseline `frozen`).
"""

import io
import os

import numpy as np

from bert.common import storage
from bert.common.atomic import write_whole
from bert.inference import frozen_features
from bert.modeling import checkpoints
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
    path = os.path.join(folder.shared, FILE)
    assert isinstance(task, TextClassification)
    weights = _names(task)[0]
    if weights not in fresh or len(fresh) == len(trainer.state.named):
        return
    found = frozen_features.head(
        task,
        checkpoints.encoder_of(trainer.train_step.model),
        rows,
        trainer.train_step.strategy,
    )
    if found is None:
        return
    # The random weights stay, so that all outputs differ in their gradients.
    head = trainer.state.named[weights].numpy()
    assign(trainer, task, found + np.pad(head, ((0, 0), (0, 1))))
    if folder.is_chief:
        content = io.BytesIO()
        np.save(content, found)
        write_whole(path, content.getvalue())


def read(folder: RunFolder) -> np.ndarray | None:
    """Reads the weights that a run's head was started with, [C, H + 1]."""
    path = os.path.join(folder.shared, FILE)
    if not storage.exists(path):
        return None
    with storage.open_file(path, "rb") as file:
        return np.load(io.BytesIO(file.read()), allow_pickle=False)


def assign(trainer: Trainer, task: Task, head: np.ndarray) -> None:
    """Assigns float32 [C, H + 1], W and b, to the head of a network."""
    weights, bias = _names(task)
    trainer.state.named[weights].assign(head[:, :-1])
    trainer.state.named[bias].assign(head[:, -1])


def _names(task: Task) -> list[str]:
    """Names of the variables of the head in a checkpoint."""
    scope = HEADS[task.head].scope
    return [f"{scope}output_weights", f"{scope}output_bias"]
