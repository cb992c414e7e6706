"""Scores of classification: metrics, constant baselines and the report.

Accuracy and F1 are fractions; Matthews and both correlations are in [-1, 1].
Importing this module takes a second.
"""

import functools
import pkgutil
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats
from sklearn import metrics as sklearn_metrics

from bert.data import postprocessing
from bert.data.labels import CLASSES, MULTI_LABEL, REGRESSION, Labels
from bert.tasks import class_report, evaluation
from bert.tasks.classification.files import TextExample, labels_of
from bert.tasks.evaluation import MAJORITY, first_names
from bert.tasks.metrics import METRICS
from bert.tasks.task import Evaluation

if TYPE_CHECKING:  # it imports this module
    from bert.tasks.classification.task import TextClassification


def losses(logits: NDArray, labels: NDArray, kind: str) -> NDArray:
    """Computes the training loss of each example.

    Args:
        logits: float32 [N, C].
        labels: int [N] class ids, int [N, C] zeros and ones, or float [N].
        kind: the kind of labels.

    Returns:
        float64 [N]: cross entropy in nats; for MULTI_LABEL, its mean over the
        labels; for REGRESSION, the squared error.
    """
    logits = np.asarray(logits, np.float64)
    if kind == CLASSES:
        logs = special.log_softmax(logits, -1)
        return -logs[np.arange(len(logs)), labels]
    if kind == MULTI_LABEL:
        # log(1 + e^x) - y x, the cross entropy of a sigmoid.
        return (np.logaddexp(0.0, logits) - labels * logits).mean(-1)
    return (logits[:, 0] - labels) ** 2


def evaluate(
    task: "TextClassification", rows: list[TextExample], logits: NDArray
) -> Evaluation:
    """Scores the predictions of labelled texts.

    Args:
        task: the `TextClassification`, with its post-processing.
        rows: the N examples.
        logits: float32 [N, C].
    """
    kind, decision = task.labels.kind, task.labels.decision
    return evaluation_of(
        task,
        rows,
        logits,
        postprocessing.predictions(logits, kind, decision),
        postprocessing.calibrated(logits, decision),
    )


def evaluation_of(
    task: "TextClassification",
    rows: list[TextExample],
    logits: NDArray,
    predicted: NDArray,
    calibrated: NDArray,
) -> Evaluation:
    """Computes metrics and the report.

    Args:
        task, rows, logits: see `evaluate`.
        predicted: the predictions, see `postprocessing.predictions`.
        calibrated: float64 [N, C]. Logits of the probabilities.
    """
    labels, gold = task.labels, labels_of(rows)
    each = losses(calibrated, gold, labels.kind)
    weights = np.array([row.weight for row in rows])
    if (weights == 1).all():
        weights = None

    metrics = compute(task.metrics, gold, predicted, weights)
    metrics["loss"] = float(np.average(each, weights=weights))
    metrics |= _ranking(task, rows, logits)

    report: dict = {}
    warnings: list[str] = []
    shown: list = [task.shown(x) for x in predicted]
    if labels.kind != REGRESSION:
        # One cause has one remedy.
        warnings = evaluation.one_prediction_warnings(
            shown, [task.shown(x) for x in gold]
        ) or _never_predicted(task, gold, predicted)
        report = {
            "labels": [*labels.names],
            "per_class": class_report.per_class(gold, predicted, labels.names),
        }
    if labels.kind == CLASSES:
        report = class_report.of_classes(gold, predicted, labels.names)
        probabilities = special.softmax(calibrated, -1)
        report["worst_errors"] = _worst(task, rows, predicted, probabilities)
    if task.class_weights:
        weights = zip(labels.names, task.class_weights)
        report["class_weights"] = dict(weights)
    if labels.kind == REGRESSION:
        shown = []
    return Evaluation(metrics, report, shown, warnings, each)


def _never_predicted(
    task: "TextClassification", gold: NDArray, predicted: NDArray
) -> list[str]:
    """Returns a warning if labels occur but are never predicted."""
    names = task.labels.names
    of_labels, of_predictions = (
        x.sum(0) if x.ndim == 2 else np.bincount(x, minlength=len(names))
        for x in (gold, predicted)
    )
    never = (of_labels > 0) & (of_predictions == 0)
    if not never.any():
        return []

    # Rare: less than half of an equal share of the examples.
    is_rare = 2 * len(names) * of_labels[never] < len(gold)
    fix = "train for more epochs"
    if is_rare.all() and not task.class_weights:
        fix = "pass --class_weights=balanced"
    shown = (f"{names[i]!r} ({of_labels[i]:,})" for i in np.flatnonzero(never))
    return [
        "never predicted, with the number of examples: "
        f"{first_names(shown)}; {fix}"
    ]


def _worst(
    task: "TextClassification",
    rows: list[TextExample],
    predicted: NDArray,
    probabilities: NDArray,
) -> list[dict]:
    """Lists the wrong predictions with the highest probability.

    Args:
        task, rows: see `evaluate`; the labels are CLASSES.
        predicted: int [N]. The predicted classes.
        probabilities: float [N, C]. The probabilities.

    Returns:
        a dict for each, with id, line, text, label, predicted, probability.
    """
    names = task.labels.names
    given = postprocessing.predicted_probabilities(probabilities, predicted)
    return evaluation.worst(
        {
            "id": row.id,
            "line": row.line,
            "text": [row.text, row.text_b] if row.text_b else row.text,
            "label": names[row.label],
            "predicted": names[found],
            "probability": float(probability),
        }
        for row, found, probability in zip(rows, predicted, given, strict=True)
        if row.label != found
    )


def _ranking(
    task: "TextClassification", rows: list[TextExample], logits: NDArray
) -> dict[str, float]:
    """Ranking metrics of pairs with labels 0 and 1, by first text."""
    labels, gold, ranks = task.labels, labels_of(rows), logits[:, 0]
    if labels.kind == CLASSES and sorted(labels.names) == ["0", "1"]:
        one = labels.names.index("1")
        gold, ranks = gold == one, logits[:, one] - logits[:, 1 - one]
    elif labels.kind != REGRESSION or not np.isin(gold, (0, 1)).all():
        return {}
    if not any(row.text_b for row in rows):
        return {}
    queries = [row.text for row in rows]
    return ranking(queries, gold.astype(float), ranks)


def baselines(
    labels: Labels, gold: NDArray, train: NDArray
) -> dict[str, float]:
    """Scores constant predictions, fitted to the training labels.

    Args:
        labels: the labels of the task.
        gold: the labels of the evaluated texts, see `labels_of`.
        train: the labels of training.

    Returns:
        "metric/kind" -> value, see `tasks.eval_report`.
    """
    if labels.kind == CLASSES:
        return evaluation.baselines_of_classes(gold, train, labels.size)
    if labels.kind == REGRESSION:
        error = np.abs(gold - np.median(train)).mean()
        return {
            f"loss/{MAJORITY}": float(((gold - train.mean()) ** 2).mean()),
            f"mae/{MAJORITY}": float(error),
        }

    # Accuracy compares whole sets of labels.
    sets, counts = np.unique(train, axis=0, return_counts=True)
    is_right = (gold == sets[counts.argmax()]).all(1)
    return {f"accuracy/{MAJORITY}": float(is_right.mean())}


def compute(
    metrics: tuple[str, ...],
    labels: NDArray,
    predicted: NDArray,
    weights: NDArray | None = None,
) -> dict[str, float]:
    """Computes metrics.

    Args:
        metrics: names in `METRICS`.
        labels: the labels, [N] or [N, C].
        predicted: the predictions, in the same shape.
        weights: float [N] or None. Weights of the examples. Default: None,
            equal weights.

    Returns:
        metric -> value; correlations with a constant are 0.
    """
    values = {}
    for name in metrics:
        function = pkgutil.resolve_name(METRICS[name].function)
        value = function(labels, predicted, sample_weight=weights)
        values[name] = float(value)
    return values


def ranking(
    queries: list[str], relevant: NDArray, ranks: NDArray
) -> dict[str, float]:
    """Computes the reranking metrics of sentence-transformers.

    Args:
        queries: the query of each of N examples; equal queries are ranked
            together.
        relevant: float [N]. 1 for relevant texts, 0 for others.
        ranks: float [N]. Scores; the highest is ranked first.

    Returns:
        mrr@10 and ndcg@10, the means over queries with texts of both kinds;
        empty without such a query.
    """
    rows: dict[str, list[int]] = {}
    for index, query in enumerate(queries):
        rows.setdefault(query, []).append(index)

    gains, reciprocals, normalized = 1 / np.log2(np.arange(2, 12)), [], []
    for chosen in rows.values():
        hits = relevant[chosen][np.argsort(-ranks[chosen], kind="stable")]
        if hits.min() == hits.max():
            continue
        best, top = np.sort(hits)[:-11:-1], hits[:10]
        normalized.append(
            (top @ gains[: len(top)]) / (best @ gains[: len(best)])
        )
        reciprocals.append(top.max() / (1 + top.argmax()))
    if not normalized:
        return {}
    return {
        "mrr@10": float(np.mean(reciprocals)),
        "ndcg@10": float(np.mean(normalized)),
    }


def pearson(
    labels: NDArray,
    predicted: NDArray,
    sample_weight: NDArray | None = None,
) -> float:
    """Pearson's correlation; 0 for constants, where it is undefined."""
    if np.ptp(labels) == 0 or np.ptp(predicted) == 0:
        return 0.0
    (a, both), (_, b) = np.cov(labels, predicted, aweights=sample_weight)
    return both / np.sqrt(a * b)


def spearman(
    labels: NDArray,
    predicted: NDArray,
    sample_weight: NDArray | None = None,
) -> float:
    """Spearman's correlation: Pearson's correlation of the ranks."""
    ranks = stats.rankdata(labels), stats.rankdata(predicted)
    return pearson(*ranks, sample_weight)


def micro_f1(
    labels: NDArray,
    predicted: NDArray,
    sample_weight: NDArray | None = None,
) -> float:
    """F1 of the counts of all labels of all examples."""
    if sample_weight is not None:
        sample_weight = np.repeat(sample_weight, labels.shape[1])
    flat = labels.ravel(), predicted.ravel()
    return f1(*flat, sample_weight=sample_weight)


# F1 of class 1, as for MRPC and QQP.
f1 = functools.partial(sklearn_metrics.f1_score, zero_division=0.0)
macro_f1 = functools.partial(f1, average="macro")
