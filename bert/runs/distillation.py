"""Distillation: the outputs of --teacher as targets of a run.

The outputs are computed once, and stored in the folder of the run, or of all
runs of seeds, values or folds.
"""

import functools
import hashlib
import json
import os
from typing import Any

import numpy as np

from bert.common import storage
from bert.common.formats import array_files
from bert.common.progress import log
from bert.data.records.examples import Examples
from bert.inference import predictor, teacher
from bert.inference.predictor import Predictor
from bert.runs.run_folder import RunFolder
from bert.tasks.classification.task import TextClassification
from bert.tasks.task import Task


def check(settings: Any, student: Task) -> None:
    """Checks that the student can learn from --teacher, if there is one.

    Args:
        settings: settings of the script.
        student: Task. Task of the run.

    Raises:
        UserError: the teacher does not exist, or has another task or labels.
    """
    if settings.teacher:
        task = predictor.task_of(predictor.open_model(settings.teacher))
        teacher.check(task, student, settings.teacher)


@functools.cache  # the files may have gigabytes
def digest(path: str | None) -> str:
    """Returns a hash of a teacher, in hex; "" without one."""
    return predictor.open_model(path).digest() if path else ""


def add_targets(
    folder: RunFolder, student: Task, rows: list, examples: Examples
) -> None:
    """Adds the outputs of the teacher to the training examples.

    Args:
        folder: RunFolder. Folder of the run.
        student: Task. Task of the run.
        rows: list. N rows of training; those without labels only learn from
            the teacher.
        examples: Examples. The examples of the rows.
    """
    outputs = _stored(folder, student, rows)
    if isinstance(student, TextClassification):
        weight = folder.settings.distill_weight
        teacher.add(examples, student, rows, outputs, weight)
        return

    # The T embeddings of a row.
    outputs = teacher.resized(outputs, folder.config.hidden_size)
    teacher.add_outputs(examples, outputs.reshape(len(rows), -1))


def _stored(folder: RunFolder, student: Task, rows: list) -> np.ndarray:
    """Reads the outputs for rows, or computes and stores them."""
    settings, examples = folder.settings, student.inputs_of(rows)
    identity = [digest(settings.teacher), examples]
    if isinstance(student, TextClassification):
        identity.append(student.labels.names)  # the order of the outputs
    described = json.dumps(identity).encode()
    name = f"teacher-{hashlib.sha256(described).hexdigest()[:16]}.npy"
    path = os.path.join(settings.sweep_dir or folder.shared, name)
    if storage.exists(path):
        stored = array_files.read(path)
        if stored is not None and len(stored) == len(examples):
            log(f"outputs of the teacher: {path}")
            return stored
        log(f"warning: {path} is damaged: the outputs are computed again")

    opened = Predictor.open(settings.teacher)
    outputs = teacher.targets(opened, student, rows)
    if folder.is_chief:
        array_files.write(path, outputs)
    return outputs
