"""Runs a fine-tuning script: reads, trains, evaluates, predicts and exports.

settings -> read(folder) -> task, files -> finetuning.train_and_evaluate
"""

import functools
from collections.abc import Callable
from typing import Any

from bert.reports import drawing
from bert.runs import distillation, program_cache, sweep
from bert.runs.run_folder import RunFolder
from bert.tasks.task import TRAIN, Files, Task
from bert.training import workers


def run(
    settings: Any, read: Callable[[RunFolder], tuple[Task, Files]]
) -> sweep.Result | None:
    """Runs a script once, or several times for seeds, values or folds.

    Args:
        settings: settings of the script, a subclass of `FineTuning`.
        read: function. Reads and checks the files of a run; returns its task
            and the files.

    Returns:
        Scores and files of the run; None for several.

    Raises:
        UserError: a flag or a file is invalid.
    """
    result = None
    if settings.is_several:
        sweep.run(settings, functools.partial(run, read=read))
    else:
        with RunFolder.open(settings) as folder:
            task, files = read(folder)
            num_rows = sum(len(file.rows) for file in files[TRAIN])
            folder = folder.with_recipe(task, num_rows)
            distillation.check(folder.settings, task)
            program_cache.use(folder.config)

            # TensorFlow is imported late: invalid flags and files fail before.
            from bert.runs import finetuning

            result = finetuning.train_and_evaluate(folder, task, files)

    # Several runs have one report.
    if not settings.sweep_dir:
        drawing.draw_trained(settings, workers.is_chief())
    return result
