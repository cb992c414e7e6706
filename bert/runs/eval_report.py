"""`eval_report.json`: metrics with their baselines, classes, worst errors.

A baseline is the score of a model that has not read the texts, has not learned
from them, or is much simpler. It is fitted to the training examples; in a run
that does not train, to the evaluated ones. The file calls it a reference, and
names it `metric/kind`:

    majority      always predict the most frequent label
    chance        predict all labels with equal probability
    frequencies   predict each label with its frequency
    unigrams      the same for the tokens of the masked LM
    word_overlap  fraction of words that two texts share
    before        the weights before training
    tfidf         linear model of the words
"""

import os

from bert.common import atomic
from bert.common.formats import json_files
from bert.common.progress import log
from bert.modeling.formats.model_card import REPORT
from bert.tasks.evaluation import TFIDF
from bert.tasks.metrics import sign


def describe(name: str, value: float, baselines: dict[str, float]) -> str:
    """Formats a metric and its baselines: `0.656250 (majority 0.656250)`."""
    beside = ", ".join(
        f"{kind} {reference:.6f}"
        for kind, reference in _of(name, baselines).items()
    )
    return f"{value:.6f}{f' ({beside})' if beside else ''}"


def warning(metrics: dict[str, float], baselines: dict[str, float]) -> str:
    """Names metrics that are not better than all of their baselines, or ""."""
    worse, better = [], []
    for name, value in metrics.items():
        beside = _of(name, baselines)
        beside.pop(TFIDF, None)  # see `simpler`
        if not beside:
            continue

        kind = max(beside, key=lambda key: sign(name) * beside[key])
        if sign(name) * value > sign(name) * beside[kind]:  # not NaN
            better.append(name)
        else:
            worse.append(f"{name} {value:.6f} ({kind} {beside[kind]:.6f})")
    if not worse:
        return ""

    # A worse loss with better predictions has another cause.
    advice = "check --learning_rate, the number of steps and the data"
    if better and all(
        text.partition(" ")[0].endswith("loss") for text in worse
    ):
        advice = (
            "its predictions are better, but overconfident: train for fewer "
            "epochs or lower --learning_rate"
        )
    return f"not better than a baseline: {', '.join(worse)}; {advice}"


def simpler(metrics: dict[str, float], baselines: dict[str, float]) -> str:
    """Names metrics for which the linear model of words is better, or ""."""
    worse = []
    for name, value in metrics.items():
        simple = _of(name, baselines).get(TFIDF, value)
        if sign(name) * simple > sign(name) * value:
            worse.append(f"{name} {value:.6f} ({TFIDF} {simple:.6f})")
    if not worse:
        return ""
    return (
        "a linear model of the words is better: "
        f"{', '.join(worse)}; train for more epochs, with another "
        "--learning_rate or from another --init_checkpoint, or use that model"
    )


def _of(name: str, baselines: dict[str, float]) -> dict[str, float]:
    """Baselines of a metric: kind -> value."""
    prefix = f"{name}/"
    return {
        key.removeprefix(prefix): value
        for key, value in baselines.items()
        if key.startswith(prefix)
    }


def write(
    folder: str, step: int, metrics: dict[str, float], report: dict
) -> str:
    """Writes the report, and warns if the model is not better than baselines.

    Args:
        folder: str. Output folder of the run.
        step: int. Training step of the evaluated weights.
        metrics: dict. Metric -> value.
        report: dict. All other values of the file. `task` is the name of the
            task, `records` the evaluated file.

    Returns:
        Path of the file.
    """
    # The file keeps this order: a summary first, then long lists.
    summary = {"task": report["task"], "step": step}
    summary |= {"records": report["records"], "metrics": metrics}
    whole = summary | report
    baselines = report.get("references", {})
    both = warning(metrics, baselines), simpler(metrics, baselines)
    for worse in filter(None, both):
        log(f"warning: {worse}")
        whole["warning"] = "; ".join(filter(None, both))
    path = os.path.join(folder, REPORT)
    text = json_files.to_json(whole, indent=1, ensure_ascii=False)
    atomic.write_whole(path, text + "\n")
    return path
