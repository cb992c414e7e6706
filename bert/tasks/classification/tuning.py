"""Thresholds and a temperature, fitted to labelled texts after training.

    logits - thresholds, or logits - log(weights)  -> predictions
    (logits - log(weights)) / temperature          -> probabilities

The values that are used later are fitted to all texts. To avoid optimistic
scores, each half of the texts is scored with values fitted on the other half.
"""

import dataclasses

import numpy as np
from scipy import optimize
from sklearn import metrics as sklearn_metrics

from bert.common.progress import say
from bert.data import label_kinds
from bert.data.label_kinds import CLASSES, Decision, Labels
from bert.tasks import class_report
from bert.tasks.classification import metrics
from bert.tasks.classification.inputs import Data, Part
from bert.tasks.classification.score_settings import Scoring
from bert.tasks.classification.tasks import MACRO_F1

_BINS = 15  # as Guo et al. 2017
_POINTS = 50  # per precision-recall curve
_LARGEST = 20.0  # maximum temperature


@dataclasses.dataclass(frozen=True)
class Tuned:
    """Fitted thresholds and temperature, with their evaluation.

    Attributes:
        decision: post-processing, fitted to all examples.
        answers: predictions, see `label_kinds.answers`. Each half of the
            examples is predicted with the values fitted on the other half.
        report: dict. Entries for `eval_report.write`.
    """

    decision: Decision
    answers: np.ndarray
    report: dict


def tune(scoring: Scoring, data: Data, part: Part, logits: np.ndarray) -> Tuned:
    """Fits thresholds and a temperature as set, and prints their effect.

    Args:
        scoring: the settings.
        data: labels with recorded post-processing, metrics, class weights.
        part: the N labelled examples.
        logits: float32 [N, C].
    """
    labels, kind, gold = data.labels, data.labels.kind, part.labels
    positive = _positive(scoring, labels, gold)

    def fit(rows: np.ndarray) -> Decision:
        decision = labels.decision
        if scoring.tune_thresholds:
            cuts = _cuts(logits[rows], gold[rows], positive)
            decision = dataclasses.replace(decision, cuts=cuts)
        if scoring.calibrate:
            logs = tuple(np.log(data.class_weights).tolist())
            shifted = logits[rows] - (np.array(logs) if logs else 0.0)
            decision = dataclasses.replace(
                decision,
                log_weights=logs,
                temperature=temperature(shifted, gold[rows], kind),
            )
        return decision

    # Halves stratified by label.
    order = np.lexsort(gold.reshape(len(gold), -1).T)
    is_first = np.zeros(len(gold), bool)
    is_first[order[::2]] = True
    plain = label_kinds.answers(logits, kind)
    plain_chances = label_kinds.probabilities(logits, kind)
    answers, chances = plain.copy(), plain_chances.copy()
    for rows in (is_first, ~is_first) if len(gold) > 1 else ():
        decision = fit(~rows)
        answers[rows] = label_kinds.answers(logits[rows], kind, decision)
        chances[rows] = label_kinds.probabilities(logits[rows], kind, decision)
    decision = fit(np.ones(len(gold), bool))

    report: dict = {}
    if scoring.tune_thresholds:
        report["cuts"] = _by_name(labels, decision, positive)
        report["curves"] = _curves(labels, logits, gold, positive)
        _say_thresholds(part, labels, report["cuts"], plain, answers)
    if scoring.calibrate:
        before = calibration(plain_chances, gold, plain, kind)
        after = calibration(chances, gold, answers, kind)
        say(
            f"temperature {decision.temperature:.4g}, fitted on {part.path}: "
            f"expected calibration error {before['error']:.4f} -> "
            f"{after['error']:.4f}"
        )
        report["calibration"] = {
            "temperature": decision.temperature,
            "before": before,
            "after": after,
        }

    # Report several metrics, as one may rise at the cost of another.
    names = (*dict.fromkeys((*data.metrics, MACRO_F1)),)
    report["before_tuning"] = metrics.scores(names, gold, plain)
    after = metrics.scores(names, gold, answers)
    changes = ", ".join(
        f"{name} {value:.4f} -> {after[name]:.4f}"
        for name, value in report["before_tuning"].items()
    )
    say(
        f"{part.path}, before -> after tuning: {changes} (cross-fitted on two "
        "halves; later predictions use values fitted on the whole file)"
    )
    return Tuned(decision, answers, report)


def _say_thresholds(
    part: Part,
    labels: Labels,
    cuts: dict[str, float],
    plain: np.ndarray,
    answers: np.ndarray,
) -> None:
    """Prints thresholds with the F1 before and after tuning."""
    before, after = (
        class_report.per_class(part.labels, found, labels.names)
        for found in (plain, answers)
    )
    shown = ", ".join(
        f"{name} {cut:.4g} (F1 {before[name]['f1']:.4f} -> "
        f"{after[name]['f1']:.4f})"
        for name, cut in cuts.items()
    )
    say(f"logit thresholds, fitted for F1 on {part.path}: {shown}")


def cut_of(margins: np.ndarray, gold: np.ndarray) -> float:
    """The threshold with the highest F1; 0 without a positive example.

    Args:
        margins: float32 [N]. Logits.
        gold: int [N]. Labels, 0 or 1.
    """
    if not gold.any():
        return 0.0
    precision, recall, cuts = sklearn_metrics.precision_recall_curve(
        gold, margins
    )
    total = np.maximum(precision + recall, 1e-12)
    best = int((2 * precision * recall / total)[:-1].argmax())

    # Halfway between two examples, so that rounding moves neither over it.
    below = cuts[best - 1] if best else cuts[0] - 1.0
    return float((cuts[best] + below) / 2)


def temperature(logits: np.ndarray, gold: np.ndarray, kind: str) -> float:
    """Fits the temperature by cross entropy (Guo et al. 2017).

    Args:
        logits: float32 [N, C].
        gold: the labels, see `metrics.losses`.
        kind: the kind of labels.

    Returns:
        the divisor of the logits with the lowest cross entropy.
    """
    result = optimize.minimize_scalar(
        lambda log: metrics.losses(logits * np.exp(-log), gold, kind).mean(),
        bounds=(-np.log(_LARGEST), np.log(_LARGEST)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(np.exp(result.x))


def calibration(
    chances: np.ndarray, gold: np.ndarray, predicted: np.ndarray, kind: str
) -> dict:
    """Compares probabilities with the fractions of correct predictions.

    Args:
        chances: probabilities, float32 [N, C].
        gold: the labels, int [N] or [N, C].
        predicted: the predictions, in the same shape.
        kind: CLASSES compares the probabilities of the predicted classes,
            MULTI_LABEL the probabilities of all labels.

    Returns:
        `error`, the expected calibration error; `bins`, a list of mean
        probability, fraction of correct predictions, number of examples.
    """
    if kind == CLASSES:
        sure = label_kinds.of_predicted(chances, predicted)
        hits = predicted == gold
    else:
        sure, hits = chances.ravel(), gold.ravel()
    numbers = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    bins = [
        (float(sure[numbers == i].mean()), float(hits[numbers == i].mean()), n)
        for i, n in enumerate(np.bincount(numbers).tolist())
        if n
    ]
    error = sum(abs(mean - share) * n for mean, share, n in bins) / len(sure)
    return {"error": error, "bins": [list(entry) for entry in bins]}


def _positive(scoring: Scoring, labels: Labels, gold: np.ndarray) -> int | None:
    """The id of the positive class for a threshold; None if not binary."""
    if labels.kind != CLASSES or not scoring.tune_thresholds:
        return None
    if scoring.positive_label:
        return labels.names.index(scoring.positive_label)

    counts = np.bincount(gold, minlength=2)
    positive = int(counts[1] <= counts[0])
    say(f"--positive_label={labels.names[positive]}, the rarer label")
    return positive


def _margins(
    logits: np.ndarray, gold: np.ndarray, positive: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Logits to threshold, float32 [N, M], and labels 0 or 1, int [N, M]."""
    if positive is None:
        return logits, gold
    margins = logits[:, positive] - logits[:, 1 - positive]
    return margins[:, np.newaxis], (gold == positive)[:, np.newaxis]


def _cuts(
    logits: np.ndarray, gold: np.ndarray, positive: int | None
) -> tuple[float, ...]:
    """Fits the thresholds to subtract from the logits, [C]."""
    margins, is_one = _margins(logits, gold, positive)
    cuts = [cut_of(*both) for both in zip(margins.T, is_one.T)]
    if positive is None:
        return tuple(cuts)
    return (0.0, *cuts) if positive else (*cuts, 0.0)


def _by_name(
    labels: Labels, decision: Decision, positive: int | None
) -> dict[str, float]:
    """Name -> threshold of each label with a threshold."""
    cuts = dict(zip(labels.names, decision.cuts))
    if positive is None:
        return cuts
    name = labels.names[positive]
    return {name: cuts[name]}


def _curves(
    labels: Labels, logits: np.ndarray, gold: np.ndarray, positive: int | None
) -> dict[str, list[list[float]]]:
    """Name -> threshold, precision and recall at points of the curve."""
    margins, is_one = _margins(logits, gold, positive)
    names = labels.names if positive is None else [labels.names[positive]]
    curves = {}
    for name, values, ones in zip(names, margins.T, is_one.T):
        if not ones.any():
            continue
        precision, recall, cuts = sklearn_metrics.precision_recall_curve(
            ones, values
        )
        points = np.stack([cuts, precision[:-1], recall[:-1]], -1)
        curves[name] = points[:: -(-len(points) // _POINTS)].tolist()
    return curves
