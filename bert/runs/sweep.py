"""Several runs of a fine-tuning script: seeds, lists of values, or folds.

    run(settings, run_one)  # settings -> RunSummary

A run does not depend on the others: it is the script with other settings, in a
subfolder of --output_dir. When the command is repeated, finished runs are not
trained again.
"""

import dataclasses
import itertools
import os
import statistics
from collections.abc import Callable
from typing import Generic, NamedTuple

from bert.common import storage
from bert.common.atomic import write_whole
from bert.common.formats.json_files import Json
from bert.common.progress import log
from bert.modeling.formats.model_card import Scores
from bert.modeling.formats.model_folder import ModelFolder
from bert.runs import written_files
from bert.tasks.finetuning_settings import FineTuningT
from bert.tasks.run import OutputFolder
from bert.tasks.task import Task
from bert.training import workers

TABLE = "runs.tsv"
_LOSS = "loss"  # the mean over batches, not a metric
_ALL_ROWS = "all_rows"  # trained after the folds


class HeldOut(NamedTuple):
    """The evaluated rows of a fold.

    Attributes:
        task: Task. The task of the run.
        rows, encoded, results: the rows, see `Task.score`.
    """

    task: Task
    rows: list
    encoded: list
    results: list


class Trial(NamedTuple, Generic[FineTuningT]):
    """One of several runs.

    Attributes:
        name: str. Name of its folder in --output_dir.
        settings: settings of the script for this run.
        group: str. Name of the values that it shares with runs of other
            seeds. "" if all runs are seeds or folds.
    """

    name: str
    settings: FineTuningT
    group: str = ""


class RunSummary(NamedTuple):
    """Scores and files of a run.

    Attributes:
        step: int. Training step of the weights.
        metrics: dict. Metric -> value; {} without an evaluation.
        report: dict. Other values of `eval_report.json`.
        rank: tuple of float. The selection metric, then the loss; the best run
            has the highest.
        predictions: list of str. Paths of the files of predictions.
        held_out: HeldOut or None. The evaluated rows of a fold, for tasks
            whose folds are joined.
    """

    step: int
    metrics: dict[str, float]
    report: dict[str, Json]
    rank: tuple[float, ...]
    predictions: list[str]
    held_out: HeldOut | None = None


def run(
    settings: FineTuningT, run_one: Callable[[FineTuningT], RunSummary]
) -> None:
    """Runs a command several times, and once more to predict or export.

    Prediction and export use the best run of seeds or lists. With both it is
    the best seed of the values with the best mean. With folds they use one
    more run, which is trained on all rows.

    Args:
        settings: settings of the script.
        run_one: function. Settings of a run -> its result.
    """
    # The largest batches first: they need the most examples and memory.
    trials, found = expand_trials(settings), {}
    for trial in sorted(trials, key=lambda x: -x.settings.train_batch_size):
        log(f"run: {trial.name}")
        found[trial.name] = run_one(trial.settings)
    summaries = [found[x.name] for x in trials]
    best = _best(trials, summaries)
    if workers.is_chief():
        _write(settings, trials, summaries, best)
    if not (settings.do_predict or settings.export_dir):
        return

    # The best run is repeated, without training.
    last = trials[best].settings
    if settings.num_folds:
        last = _of_all_rows(settings, summaries, best)
    log(f"predictions and export use {last.output_dir}")
    last = dataclasses.replace(
        last, do_predict=settings.do_predict, export_dir=settings.export_dir
    )
    result = run_one(last)
    if workers.is_chief():
        _copy(result.predictions, last.output_dir, settings.output_dir)


def _by_group(trials: list[Trial[FineTuningT]]) -> dict[str, list[int]]:
    """Group of runs that differ in their seeds only -> their indices."""
    groups: dict[str, list[int]] = {}
    for i, trial in enumerate(trials):
        groups.setdefault(trial.group, []).append(i)
    return groups


def _best(trials: list[Trial[FineTuningT]], summaries: list[RunSummary]) -> int:
    """Index of the best run of the group with the best mean."""
    groups = _by_group(trials)

    def mean_rank(name: str) -> tuple[float, ...]:
        ranks = [summaries[i].rank for i in groups[name]]
        return tuple(map(statistics.fmean, zip(*ranks, strict=True)))

    best = groups[max(groups, key=mean_rank)]
    return max(best, key=lambda i: summaries[i].rank)


def _of_all_rows(
    settings: FineTuningT, summaries: list[RunSummary], best: int
) -> FineTuningT:
    """Returns the settings of the run on the rows of all folds.

    The scores of the folds are an estimate of its scores.
    """
    scores = Scores(
        summaries[best].report["task"],
        summaries[best].report["records"],
        {**summarize([x.metrics for x in summaries])},
        summaries[best].step,
        f"means of {len(summaries)} folds",
    )
    changes = {"num_folds": 0, "do_eval": False, "scores": scores}
    return _trial(settings, _ALL_ROWS, "", **changes).settings


def _write(
    settings: FineTuningT,
    trials: list[Trial[FineTuningT]],
    summaries: list[RunSummary],
    best: int,
) -> None:
    """Writes the files about all runs."""
    path = settings.output_dir
    model = ModelFolder.open(trials[best].settings.output_dir)
    folder = OutputFolder(path, path)
    written_files.write_inputs(folder, model.config, model.tokenizer)

    names, metrics = [x.name for x in trials], [x.metrics for x in summaries]
    means = {
        name: summarize([metrics[i] for i in group])
        for name, group in _by_group(trials).items()
    }
    paths, report = [folder.file(TABLE)], summaries[best].report
    chosen = None if settings.num_folds else best
    means = means if len(means) < len(trials) else {}
    write_table(paths[0], names, metrics, means, chosen)

    if settings.num_folds:
        held_out = [x.held_out for x in summaries if x.held_out]
        joined: dict = {}
        if held_out:
            written, joined = join(path, names, held_out)
            paths += written
        baselines = [x.report.get("references", {}) for x in summaries]
        report = joined | {
            "task": report["task"],
            "records": report["records"],
            "references": means_of(baselines),
        }
    else:
        report = report | {"run": names[best]}
    summary = means.get(trials[best].group, metrics[best])
    step = summaries[best].step
    paths += written_files.write_results(folder, step, summary, report)
    written_files.print_written(paths)


def join(
    folder: str, names: list[str], folds: list[HeldOut]
) -> tuple[list[str], dict]:
    """Writes the out-of-fold predictions for all rows.

    Args:
        folder: str. Folder to write to.
        names: list of str. Name of each fold.
        folds: list of HeldOut. The evaluated rows of each fold.

    Returns:
        the paths of the files, and a report on all rows.
    """
    joined = [
        (name, *each)
        for name, (_, *columns) in zip(names, folds)
        for each in zip(*columns, strict=True)
    ]
    joined.sort(key=lambda x: x[1].line)  # in the order of the file
    of_rows, rows, encoded, results = map(list, zip(*joined))
    task = folds[0].task
    paths = task.write_out_of_fold(folder, rows, encoded, results, of_rows)
    return paths, task.score(rows, encoded, results).report


def _copy(paths: list[str], source: str, folder: str) -> None:
    """Copies the predictions in the folder of a run to another folder."""
    copies = []
    for path in paths:
        if os.path.dirname(path) == source:
            copies.append(os.path.join(folder, os.path.basename(path)))
            storage.copy(path, copies[-1])
    written_files.print_written(copies)


def expand_trials(settings: FineTuningT) -> list[Trial[FineTuningT]]:
    """Lists the runs of seeds, folds or lists of values, in order.

    Args:
        settings: settings of the script.
    """
    if settings.num_folds:
        numbers = range(1, settings.num_folds + 1)
        return [_trial(settings, f"fold_{i}", fold=i) for i in numbers]

    # All combinations of the values, each with all seeds.
    first = settings.random_seed
    trials = []
    for values in itertools.product(*(values for _, values in settings.grid)):
        changes = dict(zip((name for name, _ in settings.grid), values))
        parts = [f"{flag}_{value}" for flag, value in changes.items()]
        group = "_".join(parts)
        if settings.num_seeds == 1:
            trials.append(_trial(settings, group, group, **changes))
            continue
        for seed in range(first, first + settings.num_seeds):
            name = "_".join([*parts, f"seed_{seed}"])
            one = changes | {"random_seed": seed}
            trials.append(_trial(settings, name, group, **one))
    return trials


def _trial(
    settings: FineTuningT, name: str, group: str = "", **changes: Json
) -> Trial[FineTuningT]:
    """A run that trains and evaluates in a subfolder of --output_dir."""
    path = os.path.join(settings.output_dir, name)
    one: dict[str, Json] = {"num_seeds": 1, "grid": (), "export_dir": None}
    one |= {"output_dir": path, "sweep_dir": settings.output_dir}
    one |= {"do_predict": False, "first_seed": settings.random_seed, **changes}
    return Trial(name, dataclasses.replace(settings, **one), group)


def means_of(scores: list[dict[str, float]]) -> dict[str, float]:
    """Means of the scores that are common to all runs."""
    return {
        name: statistics.fmean(found[name] for found in scores)
        for name in _shared(scores)
    }


def summarize(scores: list[dict[str, float]]) -> dict[str, float]:
    """Means and standard deviations of the scores of all runs."""
    means, deviations = means_of(scores), {}
    for name in means if len(scores) > 1 else ():
        if name != _LOSS:
            values = [found[name] for found in scores]
            deviations[f"{name}_std"] = statistics.stdev(values)
    return means | deviations


def write_table(
    path: str,
    names: list[str],
    scores: list[dict[str, float]],
    means: dict[str, dict[str, float]],
    chosen: int | None,
) -> None:
    """Writes and prints the scores of each run, and their means.

    Args:
        path: str. File to write, with all digits.
        names: list of str. Names of the runs.
        scores: list of dict. Metric -> value, for each run.
        means: dict. Group of runs -> its result of `summarize`, for the last
            lines. {} omits them.
        chosen: int or None. Index of the run for prediction and export, which
            is marked; None omits the column.
    """
    metrics = [name for name in _shared(scores) if name != _LOSS]
    header, exact, shown = ["run", *metrics], [], []
    for i, (name, found) in enumerate(zip(names, scores, strict=True)):
        mark = ["yes" if i == chosen else "no"] if chosen is not None else []
        values = [found[key] for key in metrics]
        exact.append([name, *map(str, values), *mark])
        shown.append([name, *map("{:.4f}".format, values), *mark])
    for group, found in means.items():
        kinds = [f"{group} {kind}".lstrip() for kind in ("mean", "deviation")]
        pairs = [(found[key], found[f"{key}_std"]) for key in metrics]
        for kind, values in zip(kinds, zip(*pairs, strict=True), strict=True):
            exact.append([kind, *map(str, values)])
        ends = [f"{mean:.4f} ± {deviation:.4f}" for mean, deviation in pairs]
        shown.append([f"{kinds[0]} ± deviation", *ends])
    if chosen is not None:
        header.append("chosen")
    for row in (*exact, *shown):
        row += [""] * (len(header) - len(row))
    lines = ["\t".join(line) + "\n" for line in (header, *exact)]
    write_whole(path, "".join(lines))

    # Log.
    table = [header, *shown]
    widths = [max(map(len, column)) for column in zip(*table)]
    for line in table:
        print("  ".join(map(str.ljust, line, widths)).rstrip())


def _shared(scores: list[dict[str, float]]) -> list[str]:
    """Scores common to all runs; some may lack the ranking metrics."""
    return [name for name in scores[0] if all(name in x for x in scores)]
