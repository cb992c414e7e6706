"""Distillation: the outputs of --teacher as targets of a run.

The outputs are computed once, and stored in the folder of the run, or of all
runs of seeds, values or folds.
"""

import functools
import hashlib
import json
import os

from numpy.typing import NDArray

from bert.common import storage
from bert.common.formats import array_files
from bert.common.progress import log
from bert.data.records.examples import Examples
from bert.inference import predictor, teacher
from bert.inference.predictor import Predictor
from bert.tasks.classification.settings import Distillation
from bert.tasks.classification.task import TextClassification
from bert.tasks.finetuning_settings import FineTuning, FineTuningT, teacher_of
from bert.tasks.run import Run
from bert.tasks.task import Task


def check(settings: FineTuning, student: Task) -> None:
    """Checks that the student can learn from --teacher, if there is one.

    Args:
        settings: FineTuning. Settings of the script.
        student: Task. Task of the run.

    Raises:
        UserError: the teacher does not exist, or has another task or labels.
    """
    if path := teacher_of(settings):
        task = predictor.task_of(predictor.open_model(path))
        teacher.check(task, student, path)


def digest(settings: FineTuning) -> str:
    """Returns a hash of --teacher, in hex; "" without one."""
    path = teacher_of(settings)
    return _digest(path) if path else ""


@functools.cache  # the files may have gigabytes
def _digest(path: str) -> str:
    return predictor.open_model(path).digest()


def with_targets(
    run: Run[FineTuningT], student: Task, rows: list, examples: Examples
) -> Examples:
    """Returns training examples with the outputs of --teacher, if there is one.

    Args:
        run: Run. The run.
        student: Task. Task of the run.
        rows: list. N rows of training; those without labels only learn from
            the teacher.
        examples: Examples. The examples of the rows.
    """
    path = teacher_of(run.settings)
    if not path:
        return examples
    outputs = _outputs(run, path, student, rows)
    if isinstance(student, TextClassification):
        assert isinstance(run.settings, Distillation)
        weight = run.settings.distill_weight
        return teacher.with_outputs(examples, student, rows, outputs, weight)

    # The T embeddings of a row.
    outputs = teacher.resized(outputs, run.config.hidden_size)
    return teacher.with_vectors(examples, outputs.reshape(len(rows), -1))


def _outputs(
    run: Run[FineTuningT], teacher_path: str, student: Task, rows: list
) -> NDArray:
    """Reads the outputs for rows, or computes and stores them."""
    examples = student.inputs_of(rows)
    identity = [_digest(teacher_path), examples]
    if isinstance(student, TextClassification):
        identity.append(student.labels.names)  # the order of the outputs
    described = json.dumps(identity).encode()
    name = f"teacher-{hashlib.sha256(described).hexdigest()[:16]}.npy"
    path = os.path.join(
        run.settings.sweep_dir or run.output_folder.shared, name
    )
    if storage.exists(path):
        stored = array_files.read(path)
        if stored is not None and len(stored) == len(examples):
            log(f"outputs of the teacher: {path}")
            return stored
        log(f"warning: {path} is damaged: the outputs are computed again")

    opened = Predictor.open(teacher_path)
    outputs = teacher.targets(opened, student, rows)
    if run.output_folder.is_chief:
        array_files.write(path, outputs)
    return outputs
