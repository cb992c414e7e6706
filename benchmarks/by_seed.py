"""Scores of two systems on the same task, one seed after the other."""

import datetime
import json
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable

import tensorflow as tf

from benchmarks import commands, encoded

RATE = 5e-5
BATCH_SIZE = 32
TIMES = ("seconds", "command_seconds", "step_seconds", "peak_mb")


def train(script: str, folder: str, model: str, **flags) -> dict[str, float]:
    """Runs one of our scripts from a checkpoint.

    Args:
        script: path of the script.
        folder: output folder of the run.
        model: folder of a checkpoint, bert_config.json and vocab.txt.
        flags: further flags.

    Returns:
        the values of eval_results.txt; `seconds` of the whole command;
        `step_seconds`, the mean of a step without the first; `peak_mb`, the
        memory of the process.
    """
    flags = {
        **encoded.model_flags(model),
        "output_dir": folder,
        "train_batch_size": BATCH_SIZE,
        "eval_batch_size": BATCH_SIZE,
        "learning_rate": RATE,
        **flags,
    }
    seconds, _, peak_mb = commands.run(
        [
            *(sys.executable, script, "--do_train", "--do_eval"),
            *(f"--{name}={value}" for name, value in flags.items()),
        ]
    )
    times = {
        "seconds": seconds,
        "step_seconds": step_seconds(folder, flags["train_batch_size"]),
        "peak_mb": peak_mb,
    }
    return {**times, **results(folder)}


def results(folder: str) -> dict[str, float]:
    """The values of eval_results.txt in the folder of a run."""
    with open(f"{folder}/eval_results.txt", encoding="utf-8") as file:
        found = dict(line.strip().split(" = ") for line in file)
    return {name: float(value) for name, value in found.items()}


def step_seconds(folder: str, batch_size: int) -> float:
    """Mean time of a training step of a run, without the first.

    0 for a run that is too short to measure it.
    """
    with open(f"{folder}/metrics.jsonl", encoding="utf-8") as file:
        rates = [
            values["examples_per_second"]
            for values in map(json.loads, file)
            if values["kind"] == "train"
        ]
    return batch_size / rates[-1] if rates[-1] else 0.0


def compare(
    what: str,
    metrics: tuple[str, ...],
    sides: dict[str, Callable[[int, str], dict[str, float]]],
    seeds: Iterable[int],
) -> dict:
    """Trains each side with each seed; prints a JSON line for each.

    Args:
        what: task, epochs and flags, which are printed.
        metrics: names of its metrics.
        sides: name -> function of a seed and a folder, which returns
            `seconds` and the metrics, and may return the other `TIMES`. The
            sides share the folder of a seed.
        seeds: the seeds.

    Returns:
        side -> medians of its `TIMES`, and for each metric the value of
        each seed, their mean and deviation.
    """
    runs = {side: [] for side in sides}
    for seed in seeds:
        # The process of the report may still write there.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            for side, run in sides.items():
                found = run(seed, folder)
                names = (*TIMES, *metrics)
                kept = {x: round(found[x], 4) for x in names if x in found}
                date = datetime.date.today().isoformat()
                line = {"what": what, "side": side, "seed": seed, **kept}
                line |= {"date": date, "tensorflow": tf.__version__}
                print(json.dumps(line), flush=True)
                runs[side].append(kept)
    return {
        "what": what,
        **{side: _described(some, metrics) for side, some in runs.items()},
    }


def main(measure: Callable[..., dict]) -> None:
    """Prints a JSON line for each run, and a summary.

    Args:
        measure: function of the first two arguments, the folder of our
            weights, epochs, seeds, the Python of the peer with the folder of
            its weights, or None, and flags of our script.
    """
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    first, second, model, epochs, seeds, *peer = words
    flags = dict(
        word.removeprefix("--").split("=", 1)
        for word in sys.argv[1:]
        if word not in words
    )
    result = measure(
        first,
        second,
        model,
        float(epochs),
        numbers(seeds),
        tuple(peer) or None,
        **flags,
    )
    print(json.dumps(result))


def numbers(words: str) -> range:
    """The seeds of a command line: "3" is 1 to 3, "2-3" is 2 and 3."""
    first, _, last = words.rpartition("-")
    return range(int(first or 1), int(last) + 1)


def describe(task: str, data: str, epochs: float, flags: dict[str, str]) -> str:
    """Names a task, its file or folder, epochs, and further flags."""
    name = pathlib.Path(data).name
    return ", ".join(
        [f"{task} ({name})", f"{epochs:g} epochs", *flags.values()]
    )


def _described(runs: list[dict[str, float]], metrics: tuple[str, ...]) -> dict:
    names = [name for name in TIMES if name in runs[0]]
    found = {name: statistics.median(x[name] for x in runs) for name in names}

    for metric in metrics:
        values = [x[metric] for x in runs]
        found[metric] = {
            "values": values,
            "mean": round(statistics.mean(values), 4),
            "deviation": round(statistics.pstdev(values), 4),
        }
    return found
