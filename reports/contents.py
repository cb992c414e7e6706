"""Contents of a report of runs, as plain values."""

import dataclasses
import math

from bert.reports.figures import NUM_COLOURS, Figure, Line
from bert.reports.run_files import RunFiles, is_number

_MOST_LABELS = 20  # rows of a confusion matrix
_MOST_ERRORS = 20
_TITLES = {
    "loss": ("Loss", "nats"),
    "accuracy": ("Accuracy", "share of labels"),
    "masked_lm_loss": ("Masked LM: loss", "nats"),
    "masked_lm_accuracy": ("Masked LM: accuracy", "share of masks"),
    "next_sentence_loss": ("Next sentence: loss", "nats"),
    "next_sentence_accuracy": ("Next sentence: accuracy", "share of pairs"),
    "learning_rate": ("Learning rate", "learning rate"),
    "gradient_norm": ("Gradient norm", "L2 norm before clipping"),
    "examples_per_second": ("Throughput: examples", "examples per second"),
    "tokens_per_second": ("Throughput: tokens", "tokens per second"),
}
_ORDER = tuple(_TITLES)
_FROM_ZERO = _ORDER[-4:]
_EVAL = "eval_"


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of the page.

    Attributes:
        columns: head of each column.
        rows: cells of each row.
    """

    columns: list[str]
    rows: list[list]


def curves(runs: list[RunFiles]) -> list[Figure]:
    """The figures: losses, accuracies, learning rate, norm and throughput."""
    alone = len(runs) == 1
    lines: dict[str, list[Line]] = {}
    for number, run in enumerate(runs):
        for is_eval, points in enumerate((run.train, run.held_out)):
            kind = "held out" if is_eval else "training"
            colour = is_eval if alone else number % NUM_COLOURS
            for name, series in _series(run, points).items():
                label = kind if alone else f"{run.name}, {kind}"
                lines.setdefault(name, []).append(
                    Line(label, *zip(*series), colour, bool(is_eval))
                )
    names = sorted(
        lines, key=lambda x: (_ORDER.index(x) if x in _ORDER else 2, x)
    )
    return [
        Figure(
            *_title(name),
            lines[name],
            _references(runs, name),
            has_zero=name in _FROM_ZERO,
        )
        for name in names
    ]


def _title(name: str) -> tuple[str, str]:
    text = name.replace("_", " ")
    return _TITLES.get(name, (text[:1].upper() + text[1:], text))


def _objectives(run: RunFiles) -> list[str]:
    names = dict.fromkeys(name for point in run.train for name in point)
    return [x.removesuffix("_loss") for x in names if x.endswith("_loss")]


def _series(run: RunFiles, points: list[dict]) -> dict[str, list]:
    """Name of a quantity -> [(step, value), ...].

    Fine-tuning has one objective, whose loss is the loss; its evaluations
    name their metrics `eval_`.
    """
    objectives = _objectives(run)
    found: dict[str, dict[int, float]] = {}
    for point in points:
        for name, value in point.items():
            if name == "step" or not isinstance(value, int | float):
                continue
            if name.endswith("_per_second") and not value:
                continue  # the first call, which compiles
            if len(objectives) == 1:
                name = name.removeprefix(f"{objectives[0]}_")
            name = name.removeprefix(_EVAL)
            found.setdefault(name, {})[point["step"]] = value
    return {
        name: list(series.items())
        for name, series in found.items()
        if any(math.isfinite(value) for value in series.values())
    }


def _references(runs: list[RunFiles], name: str) -> list[tuple[str, float]]:
    """Values of a quantity that need no learning.

    A reference of a run belongs to the quantity that its name starts with; it
    is named after the run unless all runs have it.
    """
    owners: dict[tuple[str, float], list[str]] = {}
    for run in runs:
        for reference in _references_of(run, name):
            owners.setdefault(reference, []).append(run.name)
    return [
        (
            label if len(of) == len(runs) else f"{', '.join(of)}: {label}",
            value,
        )
        for (label, value), of in owners.items()
    ]


def _references_of(run: RunFiles, name: str) -> list[tuple[str, float]]:
    """(kind, value) of each; the evaluation's are named `metric/kind`."""
    found = []
    for reference, value in run.evaluation.get("references", {}).items():
        metric, _, kind = reference.partition("/")
        if metric.removeprefix(_EVAL) == name and is_number(value):
            found.append((kind or "reference", float(value)))
    objective = name.rpartition("_")[0]
    if "chance" in dict(found) or objective not in _objectives(run):
        return found
    size = run.config.get("vocab_size")
    if name == "masked_lm_loss" and is_number(size):
        found.append((f"chance, ln {size:,}", math.log(size)))
    elif name == "next_sentence_loss":
        found.append(("chance, ln 2", math.log(2)))
    return found


def scores(runs: list[RunFiles]) -> Table | None:
    """Metrics of the last evaluations, each above its references.

    Their steps and records are first: a run may have gone on since then.
    """
    rows: dict[str, list] = {}
    for number, run in enumerate(runs):
        evaluation = run.evaluation
        for values in (
            _evaluated(run),
            evaluation.get("metrics", {}),
            run.results,
            evaluation.get("references", {}),
        ):
            for name, value in values.items():
                if name != "global_step":
                    row = rows.setdefault(name, [None] * len(runs))
                    row[number] = value
    if not rows:
        return None
    metrics = list(dict.fromkeys(name.partition("/")[0] for name in rows))
    ordered = sorted(rows, key=lambda x: metrics.index(x.partition("/")[0]))
    return Table(
        ["metric", *[run.name for run in runs]],
        [[_row_title(name), *rows[name]] for name in ordered],
    )


def _evaluated(run: RunFiles) -> dict[str, str]:
    """What the last evaluation of a run has evaluated."""
    found = {"evaluated": run.evaluation.get("records")}
    # Only eval_results.txt of earlier versions has the step.
    step = run.evaluation.get("step", run.results.get("global_step"))
    if is_number(step):
        later = f", now {run.step:,}" if (run.step or 0) > step else ""
        found["at step"] = f"{int(step):,}{later}"
    return {name: text for name, text in found.items() if text}


def _row_title(name: str) -> str:
    metric, _, kind = name.partition("/")
    return (kind and f"– {kind}") or metric.replace("_", " ")


def data(runs: list[RunFiles]) -> list[dict]:
    """Statistics of the data of each run that has any."""
    found = []
    for run in runs:
        labels = {
            name: row.get("support", 0)
            for name, row in run.evaluation.get("per_class", {}).items()
        }
        most = max(labels.values(), default=0) or 1
        rows = [row for entry in run.records for row in _records(entry)]
        if rows or labels:
            shares = [(x, n, 100 * n / most) for x, n in labels.items()]
            found.append({"name": run.name, "rows": rows, "labels": shares})
    return found


def _records(entry: dict) -> list[tuple]:
    counts, shares = entry.get("statistics", {}), entry.get("shares", {})
    rows = [
        ("documents", counts.get("documents")),
        ("sentences", counts.get("sentences")),
        ("tokens", counts.get("tokens")),
        ("instances", counts.get("instances")),
        ("length of a record, in tokens", entry.get("max_seq_length")),
        ("size of the vocabulary", entry.get("vocab_size")),
    ]
    for name, title in (
        ("unknown", "[UNK] of all tokens"),
        ("fill", "tokens of all positions (the rest is padding)"),
        ("predicted", "predicted of all tokens"),
        ("random_next", "random next sentences of all pairs"),
    ):
        if is_number(shares.get(name)):
            rows.append((title, f"{shares[name]:.2%}"))
    return [row for row in rows if row[1] is not None]


def errors(run: RunFiles) -> dict:
    """Confusion matrix, scores of each class and worst errors of a run."""
    evaluation = run.evaluation
    labels = [str(label) for label in evaluation.get("labels", [])]
    matrix = evaluation.get("confusion_matrix", [])
    order = sorted(range(len(matrix)), key=lambda i: -sum(matrix[i]))
    kept = sorted(order[:_MOST_LABELS])
    rows = []
    for i in kept if len(labels) == len(matrix) else ():
        total = sum(matrix[i]) or 1
        cells = [(matrix[i][j], 45 * matrix[i][j] / total) for j in kept]
        rows.append((labels[i], cells))
    return {
        "name": run.name,
        "matrix": rows,
        "dropped": len(matrix) - len(kept),
        "classes": [
            (label, *[scores.get(x) for x in _CLASS_SCORES])
            for label, scores in evaluation.get("per_class", {}).items()
        ],
        "worst": [
            {**error, "text": _texts(error.get("text", ""))}
            for error in evaluation.get("worst_errors", [])[:_MOST_ERRORS]
        ],
    }


_CLASS_SCORES = ("precision", "recall", "f1", "support")


def _texts(text) -> list[str]:
    return text if isinstance(text, list) else [text]


def different_settings(runs: list[RunFiles]) -> Table | None:
    """Settings that differ between runs; None of a single run."""
    if len(runs) == 1:
        return None
    names = sorted({name for run in runs for name in run.settings})
    rows = []
    for name in names:
        values = [run.settings.get(name) for run in runs]
        if any(value != values[0] for value in values):
            rows.append([name, *values])
    return Table(["setting", *[run.name for run in runs]], rows)
