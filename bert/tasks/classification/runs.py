"""Several runs of run_classifier.py: seeds, folds, or a hyperparameter grid.

list_of -> a name, settings and data for each run
work    -> trains each in its folder, writes a table, selects one for prediction
"""

import dataclasses
import itertools
import os
import statistics
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bert.common.atomic import write_whole
from bert.common.progress import say
from bert.data import label_kinds
from bert.data.label_kinds import CLASSES
from bert.modeling import task_models
from bert.modeling.formats import checkpoint_files
from bert.modeling.formats.model_card import Scores
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks import finetuning, training_data
from bert.tasks.classification import answers, folds
from bert.tasks.classification.inputs import DEV, TEST, TRAIN, Data
from bert.tasks.classification.settings import Settings
from bert.tasks.classification.task import make_task
from bert.tasks.run_folder import RunFolder
from bert.training.optimization import WarmupLinearDecay
from bert.training.run import Run
from bert.training.task import Task

TABLE, OUT_OF_FOLD = "runs.tsv", "out_of_fold.tsv"
DOUBTFUL = "out_of_fold_doubtful_labels.tsv"
_ALL_ROWS = "all_rows"  # trained after the folds


class OneRun(NamedTuple):
    """One of several runs.

    Attributes:
        name: name of its folder in --output_dir.
        settings: its settings, with that folder as --output_dir.
        data: its examples.
    """

    name: str
    settings: Settings
    data: Data


def work(
    settings: Settings, model: ModelFolder, folder: RunFolder, data: Data
) -> None:
    """Trains and evaluates each run in its folder; skips finished runs.

    Prediction and export use the best run of seeds or a grid. With folds they
    use one more run, which is trained on all rows.

    Args:
        settings: the settings of the script.
        model: the initial model.
        folder: the folder of all runs.
        data: the input files.

    Raises:
        UserError: there are too few examples, or a folder has another run.
    """
    is_divided = settings.num_folds > 0
    runs, last = list_of(settings, data), None
    if is_divided:
        parts = tuple(part for part in data.parts if part.split != DEV)
        everything = dataclasses.replace(data, parts=parts)
        last = _one(settings, _ALL_ROWS, everything)

    # Check all runs before the first one is trained.
    for one in [*runs, last] if last else runs:
        schedule_of(one)
        folder_of(one, folder)
    folder.write_inputs()
    described = data.describe() | data.describe_training()
    length = {"max_seq_length": settings.max_seq_length}
    checkpoint_files.write_task(folder.path, described | length)

    reports: list[dict] = []
    task_of = _tasks(settings, model, folder, reports)

    # Train and evaluate; prediction follows with the selected run.
    results, steps = [], []
    for one in runs:
        say(f"run: {one.name}")
        parts = tuple(part for part in one.data.parts if part.split != TEST)
        task = task_of(
            one._replace(data=dataclasses.replace(one.data, parts=parts))
        )
        run, scores = finetuning.work(
            dataclasses.replace(
                one.settings, do_predict=False, export_dir=None
            ),
            model,
            folder_of(one, folder),
            task,
        )
        results.append(scores)
        steps.append(run.weights_step)
    best = best_of(results, task)

    # A grid has no mean: its result is the result of the best run.
    means = {} if settings.grid else summarize(results)
    summary = means or results[best]
    paths = [folder.file(TABLE)]
    chosen = None if is_divided else best
    write_table(paths[0], [one.name for one in runs], results, means, chosen)
    report = reports[best] | {"run": runs[best].name}
    if is_divided:
        wrote, report = _out_of_fold(folder, data, runs)
        paths += wrote
        report |= {
            "task": settings.task,
            "records": data.of(TRAIN)[0].path,
            "references": means_of([x["references"] for x in reports]),
        }
    paths += folder.write_results(steps[best], summary, report)
    finetuning.print_written(paths)

    # The scores of the folds are an estimate for the run on all rows.
    last, scores = (last, summary) if last else (runs[best], results[best])
    if not (settings.do_predict or settings.export_dir):
        return
    evaluated = Scores(
        settings.task,
        data.of(TRAIN)[0].path,
        {**scores},
        run.weights_step,
        f"means of {len(runs)} folds" if is_divided else "",
    )
    path = last.settings.output_dir
    say(f"predictions and export use {path}")
    finetuning.work(
        dataclasses.replace(
            last.settings, do_train=is_divided, do_eval=not is_divided
        ),
        model,
        folder_of(last, folder),
        task_of(last),
        evaluated,
    )


def _tasks(
    settings: Settings,
    model: ModelFolder,
    folder: RunFolder,
    reports: list[dict],
) -> Callable[[OneRun], Task]:
    """Makes a function from a run to its task.

    Args:
        settings, model, folder: the arguments of `work`.
        reports: receives the report of each evaluation.
    """

    def task_of(one: OneRun) -> Task:
        size = one.data.labels.size
        seed = one.settings.random_seed
        task = make_task(settings, model, folder, one.data)

        def evaluate(run: Run) -> tuple[dict[str, float], dict]:
            scores, report = task.evaluate(run)
            reports.append(report)
            return scores, report

        return dataclasses.replace(
            task,
            build=lambda: task_models.build_classifier(
                model.config, size, seed
            ),
            learning_rate=schedule_of(one),
            evaluate=evaluate,
        )

    return task_of


def _out_of_fold(
    folder: RunFolder, data: Data, runs: list[OneRun]
) -> tuple[list[str], dict]:
    """Writes the out-of-fold predictions for all rows.

    Args:
        folder: the folder of all runs.
        data: the input files.
        runs: the runs of the folds.

    Returns:
        the paths of the files, and a report on all rows, see `answers.report`.
    """
    held_out = [
        (example, example_logits, one.name)
        for one in runs
        for example, example_logits in zip(
            one.data.of(DEV)[0].examples,
            answers.read_logits(folder.file(one.name)),
            strict=True,
        )
    ]
    held_out.sort(key=lambda x: x[0].line)
    rows, each, names = (list(x) for x in zip(*held_out))
    logits, labels = np.stack(each), data.labels
    paths = [folder.file(OUT_OF_FOLD)]
    answers.write_predictions(
        paths[0], rows, logits, labels, data.has_pairs, names
    )
    if labels.kind == CLASSES:
        paths.append(folder.file(DOUBTFUL))
        answers.write_doubtful_labels(
            paths[1], rows, logits, labels, data.has_pairs
        )
    whole = dataclasses.replace(data.of(TRAIN)[0], examples=rows)
    found = label_kinds.answers(logits, labels.kind, labels.decision)
    return paths, answers.report(whole, labels, logits, found)


def list_of(settings: Settings, data: Data) -> list[OneRun]:
    """Lists the runs of seeds, folds or a grid, in order.

    Args:
        settings: the settings of the script.
        data: the input files; with --num_folds, all rows are for training.

    Raises:
        UserError: there are too few examples for the folds.
    """
    if settings.num_folds:
        each = enumerate(folds.of_data(settings, data), 1)
        return [_one(settings, f"fold_{i}", part) for i, part in each]

    # All combinations of the values of the grid.
    first = settings.random_seed
    seeds = range(first, first + settings.num_seeds)
    varied = settings.grid or (("random_seed", seeds),)
    runs = []
    for values in itertools.product(*(values for _, values in varied)):
        changes = dict(zip((name for name, _ in varied), values))
        parts = [f"{flag}_{value}" for flag, value in changes.items()]
        name = "_".join(parts).removeprefix("random_")
        runs.append(_one(dataclasses.replace(settings, **changes), name, data))
    return runs


def _one(settings: Settings, name: str, data: Data) -> OneRun:
    """A run in a subfolder of --output_dir."""
    path = os.path.join(settings.output_dir, name)
    return OneRun(name, dataclasses.replace(settings, output_dir=path), data)


def schedule_of(one: OneRun) -> WarmupLinearDecay:
    """The learning rate schedule of a run; see `finetuning.schedule`."""
    count = sum(len(part.examples) for part in one.data.of(TRAIN))
    return finetuning.schedule(one.settings, count)


def folder_of(one: OneRun, folder: RunFolder) -> RunFolder:
    """The subfolder of a run; an earlier command may have trained it.

    Args:
        one: the run.
        folder: the folder of all runs.

    Raises:
        UserError: it has a run with another network or other data.
    """
    below = folder.below(one.name)
    below.check()
    for part in one.data.of(TRAIN):
        training_data.check(below.shared, part.digest, True)
    return below


def best_of(results: list[dict[str, float]], task: Task) -> int:
    """The index of the run with the best metric; the loss breaks ties.

    Args:
        results: metric -> value, for each run.
        task: a task with the selection metric.
    """
    sign = -1 if task.is_loss else 1
    return max(
        range(len(results)),
        key=lambda i: (
            sign * results[i][task.metric],
            -results[i]["eval_loss"],
        ),
    )


def means_of(results: list[dict[str, float]]) -> dict[str, float]:
    """Means of the scores that are common to all runs."""
    return {
        name: statistics.fmean(result[name] for result in results)
        for name in _shared(results)
    }


def summarize(results: list[dict[str, float]]) -> dict[str, float]:
    """Means and standard deviations of the scores of all runs."""
    means, deviations = means_of(results), {}
    for name in means if len(results) > 1 else ():
        if name.startswith("eval_"):
            values = [result[name] for result in results]
            deviations[f"{name}_std"] = statistics.stdev(values)
    return means | deviations


def write_table(
    path: str,
    names: list[str],
    results: list[dict[str, float]],
    means: dict,
    chosen: int | None,
) -> None:
    """Writes and prints the scores of each run.

    Args:
        path: the file to write, with all digits.
        names: the names of the runs.
        results: metric -> value, for each run.
        means: dict. The result of `summarize`, printed as the last line; {}
            omits the line.
        chosen: int or None. Index of the run for prediction and export, which
            is marked; None omits the column.
    """
    metrics = [name for name in _shared(results) if name.startswith("eval_")]
    header, rows = ["run", *metrics], list(zip(names, results, strict=True))
    marks = [[] for _ in rows]
    if chosen is not None:
        header.append("chosen")
        marks = [["yes" if i == chosen else "no"] for i in range(len(rows))]
    exact, shown = (
        [
            [name, *(form.format(x[key]) for key in metrics), *mark]
            for (name, x), mark in zip(rows, marks, strict=True)
        ]
        for form in ("{}", "{:.4f}")
    )
    lines = ["\t".join(line) + "\n" for line in (header, *exact)]
    write_whole(path, "".join(lines))

    # Log.
    if means:
        ends = [f"{means[x]:.4f} ± {means[f'{x}_std']:.4f}" for x in metrics]
        shown.append(["mean ± deviation", *ends, *[""] * len(marks[0])])
    table = [header, *shown]
    widths = [max(map(len, column)) for column in zip(*table)]
    for line in table:
        print("  ".join(map(str.ljust, line, widths)).rstrip())


def _shared(results: list[dict[str, float]]) -> list[str]:
    """Scores common to all runs; some may lack the ranking metrics."""
    return [name for name in results[0] if all(name in x for x in results)]
