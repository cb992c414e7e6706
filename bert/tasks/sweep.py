"""Several runs of a fine-tuning script: seeds, lists of values, or folds.

    sweep = Sweep(settings)
    for settings in sweep:
        with RunFolder.open(settings) as folder:
            sweep.add_result(finetuning.train_and_evaluate(folder, ...))

A run does not depend on the others: it is the script with other settings, in a
subfolder of --output_dir. When the command is repeated, finished runs are not
trained again.
"""

import dataclasses
import itertools
import os
import statistics
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from bert.common import storage
from bert.common.atomic import write_whole
from bert.common.progress import log
from bert.modeling.formats.model_card import Scores
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks import run_folder
from bert.tasks.eval_report import Result
from bert.tasks.run_folder import RunFolder
from bert.training import workers

TABLE = "runs.tsv"
_LOSS = "loss"  # the mean over batches, not a metric
_ALL_ROWS = "all_rows"  # trained after the folds

# Settings, folder of all runs -> paths of written files, their report.
JoinFolds = Callable[[Any, RunFolder], tuple[list[str], dict]]


class Trial(NamedTuple):
    """One of several runs.

    Attributes:
        name: str. Name of its folder in --output_dir.
        settings: settings of the script for this run.
    """

    name: str
    settings: Any


class Sweep:
    """The runs of a command: one, or several and one that predicts.

    Iterating yields the settings of each; `add_result` receives its result.
    Prediction and export use the best run of seeds or lists. With folds they
    use one more run, which is trained on all rows.

    Args:
        settings: settings of the script.

    Attributes:
        join_folds: function or None. Writes the predictions for the rows of
            all folds. Default: None, for tasks that have only scores.
    """

    def __init__(self, settings: Any):
        self.settings, self._told = settings, list[Result]()
        self.join_folds: JoinFolds | None = None

    def add_result(self, result: Result) -> None:
        """Adds the result of the last run."""
        self._told.append(result)

    def __iter__(self) -> Iterator[Any]:
        settings = self.settings
        if not settings.is_several:
            yield settings
            return
        trials, results = expand_trials(settings), {}

        # The largest batches first: they need the most examples and memory.
        for trial in sorted(trials, key=lambda x: -x.settings.train_batch_size):
            log(f"run: {trial.name}")
            yield trial.settings
            results[trial.name] = self._told.pop()
        last = self._choose(trials, [results[x.name] for x in trials])
        if not (settings.do_predict or settings.export_dir):
            return

        # The best run is repeated, without training.
        log(f"predictions and export use {last.output_dir}")
        yield dataclasses.replace(
            last,
            do_predict=settings.do_predict,
            export_dir=settings.export_dir,
        )
        if workers.is_chief():
            self._copy(self._told.pop().predictions, last.output_dir)

    def _choose(self, trials: list[Trial], results: list[Result]) -> Any:
        """Writes the scores; returns settings of the run that predicts."""
        settings = self.settings
        best = max(range(len(results)), key=lambda i: results[i].rank)
        if workers.is_chief():
            self._write(trials, results, best)
        if not settings.num_folds:
            return trials[best].settings

        # The scores of the folds are an estimate for the run on all rows.
        scores = Scores(
            results[best].report["task"],
            results[best].report["records"],
            {**summarize([x.metrics for x in results])},
            results[best].step,
            f"means of {len(trials)} folds",
        )
        changes = {"num_folds": 0, "do_eval": False, "scores": scores}
        return _trial(settings, _ALL_ROWS, **changes).settings

    def _write(
        self, trials: list[Trial], results: list[Result], best: int
    ) -> None:
        """Writes the files about all runs."""
        settings, path = self.settings, self.settings.output_dir
        model = ModelFolder.open(trials[best].settings.output_dir)
        folder = RunFolder(path, path, model.config, model.tokenizer)
        folder.write_inputs()

        # Lists have no mean: their result is the result of the best run.
        names, metrics = [x.name for x in trials], [x.metrics for x in results]
        means = {} if settings.grid else summarize(metrics)
        paths, report = [folder.file(TABLE)], results[best].report
        chosen = None if settings.num_folds else best
        write_table(paths[0], names, metrics, means, chosen)

        if settings.num_folds:
            joined: tuple[list[str], dict] = ([], {})
            if self.join_folds:
                joined = self.join_folds(settings, folder)
            paths += joined[0]
            baselines = [x.report.get("references", {}) for x in results]
            report = joined[1] | {
                "task": report["task"],
                "records": report["records"],
                "references": means_of(baselines),
            }
        else:
            report = report | {"run": names[best]}
        summary, step = means or metrics[best], results[best].step
        paths += folder.write_results(step, summary, report)
        run_folder.print_written(paths)

    def _copy(self, paths: list[str], folder: str) -> None:
        """Copies the predictions in the folder of a run to --output_dir."""
        copies = []
        for path in paths:
            if os.path.dirname(path) == folder:
                name = os.path.basename(path)
                copies.append(os.path.join(self.settings.output_dir, name))
                storage.copy(path, copies[-1])
        run_folder.print_written(copies)


def expand_trials(settings: Any) -> list[Trial]:
    """Lists the runs of seeds, folds or lists of values, in order.

    Args:
        settings: settings of the script.
    """
    if settings.num_folds:
        numbers = range(1, settings.num_folds + 1)
        return [_trial(settings, f"fold_{i}", fold=i) for i in numbers]

    # All combinations of the values.
    first = settings.random_seed
    seeds = range(first, first + settings.num_seeds)
    varied = settings.grid or (("random_seed", seeds),)
    trials = []
    for values in itertools.product(*(values for _, values in varied)):
        changes = dict(zip((name for name, _ in varied), values))
        parts = [f"{flag}_{value}" for flag, value in changes.items()]
        name = "_".join(parts).removeprefix("random_")
        trials.append(_trial(settings, name, **changes))
    return trials


def _trial(settings: Any, name: str, **changes: Any) -> Trial:
    """A run that trains and evaluates in a subfolder of --output_dir."""
    path = os.path.join(settings.output_dir, name)
    one = {"num_seeds": 1, "grid": (), "do_predict": False, "export_dir": None}
    one |= {"output_dir": path, **changes}
    return Trial(name, dataclasses.replace(settings, **one))


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
        if name != _LOSS:
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
        path: str. File to write, with all digits.
        names: list of str. Names of the runs.
        results: list of dict. Metric -> value, for each run.
        means: dict. Result of `summarize`, printed as the last line; {} omits
            the line.
        chosen: int or None. Index of the run for prediction and export, which
            is marked; None omits the column.
    """
    metrics = [name for name in _shared(results) if name != _LOSS]
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
