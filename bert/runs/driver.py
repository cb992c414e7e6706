"""Runs a fine-tuning script: reads, trains, evaluates, predicts and exports.

settings -> run -> read(run) -> task, files -> finetuning.train_and_evaluate
"""

import functools
from collections.abc import Callable

from bert.inference import teacher_outputs
from bert.reports import drawing
from bert.runs import opening, program_cache, sweep
from bert.tasks.finetuning_settings import FineTuningT
from bert.tasks.run import Run
from bert.tasks.task import Files, Task
from bert.training import workers


def run(
    settings: FineTuningT,
    read: Callable[[Run[FineTuningT]], tuple[Task[FineTuningT], Files]],
) -> sweep.RunSummary | None:
    """Runs a script once, or several times for seeds, values or folds.

    Args:
        settings: FineTuning. Settings of the script.
        read: function. Reads and checks the files of a run; returns its task
            and the files.

    Returns:
        Scores and files of the run; None for several.

    Raises:
        UserError: a flag or a file is invalid.
    """
    result = None
    if settings.is_several:
        sweep.run(settings, functools.partial(_run_one, read=read))
    else:
        result = _run_one(settings, read)

    # Several runs have one report.
    drawing.draw_trained(settings, workers.is_chief())
    return result


def _run_one(
    settings: FineTuningT,
    read: Callable[[Run[FineTuningT]], tuple[Task[FineTuningT], Files]],
) -> sweep.RunSummary:
    """Runs a script once; see `run`."""
    with opening.open_run(settings) as opened:
        task, files = read(opened)
        teacher_outputs.check(opened.settings, task)
        program_cache.use(opened.config)

        # TensorFlow is imported late: invalid flags and files fail before.
        from bert.runs import finetuning

        return finetuning.train_and_evaluate(opened, task, files)
