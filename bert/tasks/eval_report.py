"""`eval_report.json`: scores with their references, classes, worst errors.

A reference is the score of a model that has not read the texts. Its name is
`metric/kind`:

    majority      the most frequent answer for every example
    chance        every answer with the same probability
    frequencies   every answer with its share of the labels; unigrams, for the
                  tokens of the masked LM
"""

import math
import os

import numpy as np

from bert.common import atomic
from bert.common.formats import json_files
from bert.common.progress import say

REPORT = "eval_report.json"
MAJORITY, CHANCE = "majority", "chance"
FREQUENCIES, UNIGRAMS = "frequencies", "unigrams"
_LOSS = "loss"


def entropy(counts: np.ndarray) -> float:
    """Entropy of frequencies, in nats."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def describe(name: str, value: float, references: dict[str, float]) -> str:
    """A score with its references: `0.656250 (majority 0.656250)`."""
    beside = ", ".join(
        f"{key.partition('/')[2]} {reference:.6f}"
        for key, reference in references.items()
        if key.partition("/")[0] == name
    )
    return f"{value:.6f}{f' ({beside})' if beside else ''}"


def warning(metrics: dict[str, float], references: dict[str, float]) -> str:
    """The metrics that are not better than all of their references, or ""."""
    # The best reference of each metric; the best loss is the lowest.
    best: dict[str, tuple[float, str]] = {}
    for key, reference in references.items():
        name, _, kind = key.partition("/")
        sign = -1 if name.endswith(_LOSS) else 1
        best[name] = max(
            best.get(name, (-math.inf, "")), (sign * reference, kind)
        )
    found, better = {}, []
    for name, (reference, kind) in best.items():
        sign = -1 if name.endswith(_LOSS) else 1
        if name not in metrics:
            continue
        if sign * metrics[name] > reference:  # not NaN
            better.append(name)
        else:
            found[name] = f"{metrics[name]:.6f} ({kind} {sign * reference:.6f})"

    # A worse loss with better answers has another cause.
    advice = "check --learning_rate, the number of steps and the data"
    if better and all(name.endswith(_LOSS) for name in found):
        advice = (
            "its answers are better, but overconfident: train for fewer epochs "
            "or lower --learning_rate"
        )
    if not found:
        return ""
    return (
        "no better than a reference that ignores the text: "
        f"{', '.join(map(' '.join, found.items()))}; {advice}"
    )


def write(
    folder: str, step: int, metrics: dict[str, float], report: dict
) -> str:
    """Writes the report, and warns if the model is not better than references.

    Args:
        folder: output_dir of the run.
        step: training step of the evaluated weights.
        metrics: metric -> value.
        report: the other values of the file; `task`, the task's name;
            `records`, the evaluated file.

    Returns:
        the path of the file.
    """
    # The keys stay in this order: a summary first, then long lists.
    first = {"task": report["task"], "step": step}
    first |= {"records": report["records"], "metrics": metrics}
    whole = first | report
    if worse := warning(metrics, report.get("references", {})):
        say(f"warning: {worse}")
        whole["warning"] = worse
    path = os.path.join(folder, REPORT)
    text = json_files.to_json(whole, indent=1, ensure_ascii=False)
    atomic.write_whole(path, text + "\n")
    return path
