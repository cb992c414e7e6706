"""Post-processing of logits, fitted to labelled texts after training.

    logits - thresholds, or logits - log(weights)  -> predictions
    (logits - log(weights)) / temperature          -> probabilities

The values that are used later are fitted to all texts. To avoid optimistic
scores, each half of the texts is scored with values fitted on the other half.
"""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from sklearn import metrics as sklearn_metrics

from bert.common.progress import log
from bert.data import postprocessing
from bert.data.labels import CLASSES, MULTI_LABEL, Labels, PostProcessing
from bert.tasks import class_report
from bert.tasks.classification import scores
from bert.tasks.classification.files import TextExample, labels_of
from bert.tasks.classification.scoring_settings import Scoring
from bert.tasks.metrics import MACRO_F1
from bert.tasks.task import Evaluation

if TYPE_CHECKING:  # it imports this module
    from bert.tasks.classification.task import TextClassification

_BINS = 15  # as Guo et al. 2017
_POINTS = 50  # per precision-recall curve
_MAX_TEMPERATURE = 20.0


def fit(
    task: "TextClassification",
    rows: list[TextExample],
    logits: NDArray,
    scoring: Scoring,
) -> tuple[PostProcessing, Evaluation]:
    """Fits thresholds and a temperature, as the settings request.

    Args:
        task: the `TextClassification`.
        rows: the N examples.
        logits: float32 [N, C].
        scoring: the settings.

    Returns:
        the post-processing, fitted to all examples; and cross-fitted scores.
        Each half of the examples is predicted with the values fitted on the
        other half.
    """
    labels, kind, gold = task.labels, task.labels.kind, labels_of(rows)
    names: tuple[str, ...] = ()
    if scoring.tune_thresholds:
        names, margins, is_one = _margins(logits, gold, labels, scoring)

    def fit_to(part: NDArray) -> PostProcessing:
        decision = labels.decision
        if names:
            columns = zip(names, margins[part].T, is_one[part].T)
            thresholds = {name: cut_of(x, y) for name, x, y in columns}
            in_order = tuple(thresholds.get(name, 0.0) for name in labels.names)
            # A minimum probability applies to predictions without thresholds.
            decision = dataclasses.replace(
                decision, thresholds=in_order, unknown_below=0.0
            )
        if scoring.calibrate:
            logs = tuple(np.log(task.class_weights).tolist())
            shifted = logits[part] - (np.array(logs) if logs else 0.0)
            decision = dataclasses.replace(
                decision,
                log_weights=logs,
                temperature=temperature(shifted, gold[part], kind),
            )
        return decision

    # Halves stratified by label.
    order = np.lexsort(gold.reshape(len(gold), -1).T)
    is_first = np.zeros(len(gold), bool)
    is_first[order[::2]] = True
    before = postprocessing.predictions(logits, kind)
    predicted, calibrated = before.copy(), logits.astype(np.float64)
    for part in (is_first, ~is_first) if len(gold) > 1 else ():
        decision = fit_to(~part)
        some = logits[part]
        predicted[part] = postprocessing.predictions(some, kind, decision)
        calibrated[part] = postprocessing.calibrated(some, decision)
    decision = fit_to(np.ones(len(gold), bool))

    evaluation = scores.evaluation_of(task, rows, logits, predicted, calibrated)
    report = evaluation.report
    if names:
        thresholds = dict(zip(labels.names, decision.thresholds))
        report["cuts"] = {name: thresholds[name] for name in names}
        report["curves"] = _curves(names, margins, is_one)
        _log_thresholds(report["cuts"], task, gold, before, predicted, scoring)
    if scoring.calibrate:
        report["calibration"] = {
            "temperature": decision.temperature,
            "before": calibration(logits, gold, before, kind),
            "after": calibration(calibrated, gold, predicted, kind),
        }
        _log_temperature(report["calibration"])

    # One metric may rise at the cost of another.
    compared = (*dict.fromkeys((*task.metrics, MACRO_F1)),)
    report["before_tuning"] = scores.compute(compared, gold, before)
    _log_changes(
        report["before_tuning"], scores.compute(compared, gold, predicted)
    )
    return decision, evaluation


def _log_thresholds(
    thresholds: dict[str, float],
    task: "TextClassification",
    gold: NDArray,
    before: NDArray,
    predicted: NDArray,
    scoring: Scoring,
) -> None:
    """Logs fitted thresholds, with the F1 before and after."""
    labels = task.labels
    if labels.kind == CLASSES and not scoring.positive_label:
        log(f"--positive_label={next(iter(thresholds))}, the rarer label")
    old, new = (
        class_report.per_class(gold, found, labels.names)
        for found in (before, predicted)
    )
    shown = ", ".join(
        f"{name} {threshold:.4g} "
        f"(F1 {old[name]['f1']:.4f} -> {new[name]['f1']:.4f})"
        for name, threshold in thresholds.items()
    )
    log(f"logit thresholds, fitted for F1: {shown}")


def _log_temperature(found: dict) -> None:
    """Logs the temperature, with the calibration error before and after."""
    log(
        f"temperature {found['temperature']:.4g}: cross-fitted expected "
        f"calibration error {found['before']['error']:.4f} -> "
        f"{found['after']['error']:.4f}"
    )


def _log_changes(before: dict[str, float], after: dict[str, float]) -> None:
    """Logs the metrics before and after the fit."""
    changes = ", ".join(
        f"{name} {value:.4f} -> {after[name]:.4f}"
        for name, value in before.items()
    )
    log(
        f"before -> after tuning: {changes} (cross-fitted on two halves; later "
        "predictions use values fitted on the whole file)"
    )


def cut_of(margins: NDArray, gold: NDArray) -> float:
    """The threshold with the highest F1; 0 without a positive example.

    Args:
        margins: float32 [N]. Logits.
        gold: int [N]. Labels, 0 or 1.
    """
    if not gold.any():
        return 0.0
    precision, recall, thresholds = sklearn_metrics.precision_recall_curve(
        gold, margins
    )
    total = np.maximum(precision + recall, 1e-12)
    best = int((2 * precision * recall / total)[:-1].argmax())

    # Halfway between two examples, so that rounding moves neither over it.
    below = thresholds[best - 1] if best else thresholds[0] - 1.0
    return float((thresholds[best] + below) / 2)


def temperature(logits: NDArray, gold: NDArray, kind: str) -> float:
    """Fits the temperature by cross entropy (Guo et al. 2017).

    Args:
        logits: float32 [N, C].
        gold: the labels, see `scores.losses`.
        kind: the kind of labels.

    Returns:
        the divisor of the logits with the lowest cross entropy.
    """
    result = optimize.minimize_scalar(
        lambda x: scores.losses(logits * np.exp(-x), gold, kind).mean(),
        bounds=(-np.log(_MAX_TEMPERATURE), np.log(_MAX_TEMPERATURE)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(np.exp(result.x))


def calibration(
    logits: NDArray, gold: NDArray, predicted: NDArray, kind: str
) -> dict:
    """Compares probabilities with the fractions of correct predictions.

    Args:
        logits: float [N, C]. Calibrated logits.
        gold: the labels, int [N] or [N, C].
        predicted: the predictions, in the same shape.
        kind: CLASSES compares the probabilities of the predicted classes,
            MULTI_LABEL the probabilities of all labels.

    Returns:
        `error`, the expected calibration error; `bins`, a list of mean
        probability, fraction of correct predictions, number of examples.
    """
    probabilities = postprocessing.probabilities(logits, kind)
    if kind == CLASSES:
        sure = postprocessing.predicted_probabilities(probabilities, predicted)
        hits = predicted == gold
    else:
        sure, hits = probabilities.ravel(), gold.ravel()
    numbers = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    bins = [
        (float(sure[numbers == i].mean()), float(hits[numbers == i].mean()), n)
        for i, n in enumerate(np.bincount(numbers).tolist())
        if n
    ]
    error = sum(abs(mean - accuracy) * n for mean, accuracy, n in bins)
    error /= len(sure)
    return {"error": error, "bins": [list(entry) for entry in bins]}


def _margins(
    logits: NDArray, gold: NDArray, labels: Labels, scoring: Scoring
) -> tuple[tuple[str, ...], NDArray, NDArray]:
    """The logits to threshold; for two classes, the positive one's margin.

    Returns:
        M names of labels, their logits, float32 [N, M], and whether an example
        has the label, [N, M].
    """
    if labels.kind == MULTI_LABEL:
        return labels.names, logits, gold
    if scoring.positive_label:
        positive = labels.names.index(scoring.positive_label)
    else:
        counts = np.bincount(gold, minlength=2)
        positive = int(counts[1] <= counts[0])
    margins = logits[:, positive] - logits[:, 1 - positive]
    return (
        (labels.names[positive],),
        margins[:, np.newaxis],
        (gold == positive)[:, np.newaxis],
    )


def _curves(
    names: tuple[str, ...], margins: NDArray, is_one: NDArray
) -> dict[str, list[list[float]]]:
    """Name -> threshold, precision and recall at points of the curve.

    Args:
        names, margins, is_one: the result of `_margins`.
    """
    curves = {}
    for name, values, ones in zip(names, margins.T, is_one.T):
        if not ones.any():
            continue
        precision, recall, thresholds = sklearn_metrics.precision_recall_curve(
            ones, values
        )
        points = np.stack([thresholds, precision[:-1], recall[:-1]], -1)
        curves[name] = points[:: -(-len(points) // _POINTS)].tolist()
    return curves
