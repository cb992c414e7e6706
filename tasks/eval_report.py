"""`eval_report.json`: scores with their references, classes, worst errors.

A reference is the score of a model that has not read the texts. Its name is
`metric/kind`:

    majority      the most frequent answer for every example
    chance        every answer with the same probability
    frequencies   every answer with its share of the labels; unigrams, for the
                  tokens of the masked LM
"""

import os

import numpy as np

from common import storage
from common.progress import say

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


def warnings(
    metrics: dict[str, float], references: dict[str, float]
) -> list[str]:
    """Returns a line for each metric that is not better than a reference."""
    found = {}
    for key, reference in references.items():
        name, _, kind = key.partition("/")
        value = metrics.get(name)
        if value is None:
            continue
        is_loss = name.endswith(_LOSS)
        better = value < reference if is_loss else value > reference
        if not better:  # NaN is not, either
            found[name] = (
                f"warning: {name} {value:.6f} is not better than {kind}, "
                f"{reference:.6f}: the model has learned nothing here; check "
                "--learning_rate, the number of steps and the labels"
            )
    return list(found.values())


def write(folder: str, metrics: dict[str, float], report: dict) -> str:
    """Writes the report, and warns if the model is not better than references.

    Args:
        folder: output_dir of the run.
        metrics: metric -> value.
        report: the other values of the file; `task`, the task's name.

    Returns:
        the path of the file.
    """
    for line in warnings(metrics, report.get("references", {})):
        say(line)
    path = os.path.join(folder, REPORT)
    whole = {"task": report["task"], "metrics": metrics, **report}
    text = storage.to_json(whole, indent=1, ensure_ascii=False)
    storage.write_whole(path, text + "\n")
    return path
