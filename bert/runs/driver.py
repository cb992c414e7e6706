"""Runs a fine-tuning script: reads, trains, evaluates, predicts and exports.

settings -> read(folder) -> task, files -> finetuning.train_and_evaluate
"""

from collections.abc import Callable
from typing import Any

from bert.reports import drawing
from bert.runs import distillation, sweep
from bert.runs.run_folder import RunFolder
from bert.tasks.task import Files, Task
from bert.training import workers


def run(settings: Any, read: Callable[[RunFolder], tuple[Task, Files]]) -> None:
    """Runs a script once, or several times for seeds, values or folds.

    Args:
        settings: settings of the script, a subclass of `FineTuning`.
        read: function. Reads and checks the files of a run; returns its task
            and the files.

    Raises:
        UserError: a flag or a file is invalid.
    """

    def run_one(settings: Any) -> sweep.Result:
        with RunFolder.open(settings) as folder:
            task, files = read(folder)
            distillation.check(folder.settings, task)

            # TensorFlow is imported late: invalid flags and files fail before.
            from bert.runs import finetuning

            return finetuning.train_and_evaluate(folder, task, files)

    if settings.is_several:
        sweep.run(settings, run_one)
    else:
        run_one(settings)
    drawing.draw_trained(settings, workers.is_chief())
