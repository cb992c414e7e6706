"""Difference of two sets of runs on the same examples, by a paired bootstrap.

    python -m benchmarks.paired TASK DATA RUNS OTHERS

TASK and DATA are --task_name and --data_dir of run_classifier.py; RUNS and
OTHERS are folders of runs with several seeds. Prints a JSON line: the
difference of the mean metric over the seeds, OTHERS - RUNS, and its interval
of 95 % over 2,000 resamples of the development examples.
"""

import json
import pathlib
import statistics
import sys

import numpy as np

from bert.data import postprocessing
from bert.inference import teacher
from bert.inference.predictor import Predictor
from bert.runs import opening
from bert.tasks.classification import inputs, scores
from bert.tasks.classification.files import labels_of
from bert.tasks.classification.settings import Settings
from bert.tasks.classification.task import TextClassification
from bert.tasks.task import DEV

RESAMPLES = 2000


def predict(
    run: pathlib.Path, known: TextClassification, rows: list
) -> np.ndarray:
    """Returns the predictions of a run for N rows of a task, [N] or [N, C]."""
    logits = teacher.targets(Predictor.open(str(run)), known, rows)
    return postprocessing.predictions(logits, known.labels.kind)


def difference(
    metric: str, gold: np.ndarray, sides: list[list[np.ndarray]]
) -> dict[str, float]:
    """Compares two sides.

    Args:
        metric: name of a metric.
        gold: the labels of N rows.
        sides: for each side, the predictions of its runs.

    Returns:
        `difference`, of the second side to the first, and the ends of its
        interval, `low` and `high`.
    """

    def compare(rows: np.ndarray) -> float:
        first, second = (
            statistics.fmean(
                scores.compute((metric,), gold[rows], run[rows])[metric]
                for run in side
            )
            for side in sides
        )
        return second - first

    rng = np.random.default_rng(1)
    every = np.arange(len(gold))
    found = [compare(rng.choice(every, every.size)) for _ in range(RESAMPLES)]
    low, high = np.quantile(found, [0.025, 0.975])
    values = {"difference": compare(every), "low": low, "high": high}
    return {name: round(float(x), 4) for name, x in values.items()}


def main(task: str, data: str, *folders: str) -> None:
    """Prints the difference of two folders of runs."""
    runs = [sorted(pathlib.Path(x).glob("seed_*")) for x in folders]
    settings = Settings(
        do_eval=True,
        dry_run=True,
        task_name=task,
        data_dir=data,
        init_checkpoint=str(runs[0][0]),
    )
    with opening.open_run(settings) as run:
        known, files = inputs.read(run)
    rows = files[DEV][0].rows
    sides = [[predict(run, known, rows) for run in side] for side in runs]
    metric = known.metric
    found = difference(metric, np.asarray(labels_of(rows)), sides)
    what = {"task": task, "metric": metric, "runs": folders}
    print(json.dumps(what | found))


if __name__ == "__main__":
    main(*sys.argv[1:])
