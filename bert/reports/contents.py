"""Contents of the report of a run, as plain values."""

import math

from bert.reports import quantities
from bert.reports.figures import Figure, Line, shown
from bert.reports.quantities import Quantity
from bert.reports.run_files import RunFiles, is_number

_MOST_LABELS = 20  # rows of a confusion matrix
_MOST_ERRORS = 20
_CUTS = 6  # number of labels whose precision and recall are drawn
_ORDER = tuple(quantities.KNOWN)
_EVAL = "eval_"


def curves(run: RunFiles) -> list[Figure]:
    """Figures: losses, accuracies, learning rate, norm and throughput."""
    lines: dict[str, list[Line]] = {}
    for label, points in (("training", run.train), ("held out", run.held_out)):
        is_eval = points is run.held_out
        for name, series in _series(run, points).items():
            steps, values = zip(*series)
            line = Line(label, steps, values, int(is_eval), is_eval)
            lines.setdefault(name, []).append(line)

    # Other metrics of a task come after its loss and accuracy.
    names = sorted(
        lines, key=lambda x: (_ORDER.index(x) if x in _ORDER else 2, x)
    )
    return [
        Figure(
            quantities.of(name),
            lines[name],
            _references(run, name),
            has_zero=quantities.of(name).has_zero,
        )
        for name in names
    ]


def decisions(run: RunFiles) -> list[Figure]:
    """Figures: precision and recall over thresholds, and the calibration."""
    drawn = []
    for name, points in list(run.evaluation.get("curves", {}).items())[:_CUTS]:
        thresholds, precision, recall = zip(*points)
        threshold = run.evaluation.get("cuts", {}).get(name, 0.0)
        meaning = (
            f"By the threshold of the logits, which is {shown(threshold)}."
        )
        lines = [
            Line("precision", thresholds, precision, 0),
            Line("recall", thresholds, recall, 1),
        ]
        quantity = Quantity(f"Label {name}", "fraction", meaning)
        drawn.append(
            Figure(quantity, lines, [], has_zero=True, axis="threshold")
        )

    lines = []
    calibration = run.evaluation.get("calibration", {})
    for colour, label in enumerate(("before", "after")):
        if entry := calibration.get(label):
            predicted, accuracies, _ = zip(*entry["bins"])
            lines.append(
                Line(label, predicted, accuracies, colour, is_dotted=True)
            )
    if lines:
        meaning = "Accuracy by predicted probability; ideally the diagonal."
        quantity = Quantity("Calibration", "accuracy", meaning)
        lines.append(Line("ideal", (0.0, 1.0), (0.0, 1.0), 2))
        drawn.append(Figure(quantity, lines, [], axis="probability"))
    return drawn


def _objectives(run: RunFiles) -> list[str]:
    names = dict.fromkeys(name for point in run.train for name in point)
    return [x.removesuffix("_loss") for x in names if x.endswith("_loss")]


def _series(run: RunFiles, points: list[dict]) -> dict[str, list]:
    """Name of a quantity -> [(step, value), ...].

    Fine-tuning has one objective, so its loss is the total loss. Metrics of
    its evaluations start with `eval_`.
    """
    objectives = _objectives(run)
    quantities: dict[str, dict[int, float]] = {}
    for point in points:
        for name, value in point.items():
            if name == "step" or not isinstance(value, int | float):
                continue
            if name.endswith("_per_second") and not value:
                continue  # the speed of the first call, which compiles

            if len(objectives) == 1:
                name = name.removeprefix(f"{objectives[0]}_")
            name = name.removeprefix(_EVAL)
            quantities.setdefault(name, {})[point["step"]] = value

    # Curves without finite values (the run diverged) are not drawn.
    return {
        name: list(series.items())
        for name, series in quantities.items()
        if any(math.isfinite(value) for value in series.values())
    }


def _references(run: RunFiles, name: str) -> list[tuple[str, float]]:
    """Baselines of a quantity, which need no learning: (kind, value) of each.

    The baselines of the evaluation are named `metric/kind`.
    """
    baselines = []
    for name_and_kind, value in run.evaluation.get("references", {}).items():
        metric, _, kind = name_and_kind.partition("/")
        if metric.removeprefix(_EVAL) == name and is_number(value):
            baselines.append((kind or "reference", float(value)))

    # Chance level if it is not recorded: all predictions equally likely.
    objective = name.rpartition("_")[0]
    if "chance" in dict(baselines) or objective not in _objectives(run):
        return baselines
    size = run.config.get("vocab_size")
    if name == "masked_lm_loss" and is_number(size):
        baselines.append((f"chance, ln {size:,}", math.log(size)))
    elif name == "next_sentence_loss":
        baselines.append(("chance, ln 2", math.log(2)))
    return baselines


def scores(run: RunFiles) -> list[tuple[str, object, str]]:
    """Rows (title, value, meaning): each metric above its baselines.

    The evaluated step and records come first: the run may have continued.
    """
    evaluation = run.evaluation
    values = {
        **_evaluated(run),
        **evaluation.get("metrics", {}),
        **run.results,
        **evaluation.get("references", {}),
    }
    values.pop("global_step", None)

    # Baselines come after their metric: accuracy, accuracy/majority.
    metrics = list(dict.fromkeys(name.partition("/")[0] for name in values))
    ordered = sorted(values, key=lambda x: metrics.index(x.partition("/")[0]))
    return [
        (_row_title(name), values[name], quantities.meaning(name))
        for name in ordered
    ]


def _evaluated(run: RunFiles) -> dict[str, str]:
    """Records and step of the last evaluation of a run."""
    rows = {"evaluated": run.evaluation.get("records")}

    # In earlier versions only eval_results.txt has the step.
    step = run.evaluation.get("step", run.results.get("global_step"))
    if is_number(step):
        later = f", now {run.step:,}" if (run.step or 0) > step else ""
        rows["at step"] = f"{int(step):,}{later}"
    return {name: text for name, text in rows.items() if text}


def _row_title(name: str) -> str:
    metric, _, kind = name.partition("/")
    return (kind and f"– {kind}") or metric.replace("_", " ")


def errors(run: RunFiles) -> dict:
    """Confusion matrix, scores of each class, and worst errors of a run."""
    evaluation = run.evaluation
    labels = [str(label) for label in evaluation.get("labels", [])]
    matrix = evaluation.get("confusion_matrix", [])

    # Keep the most frequent labels, in the order of the model.
    order = sorted(range(len(matrix)), key=lambda i: -sum(matrix[i]))
    kept = sorted(order[:_MOST_LABELS])
    rows = []
    for i in kept if len(labels) == len(matrix) else ():
        total = sum(matrix[i]) or 1
        cells = [(matrix[i][j], 45 * matrix[i][j] / total) for j in kept]
        rows.append((labels[i], cells))

    return {
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
