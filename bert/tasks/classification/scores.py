"""Scores: metrics, a TF-IDF baseline, and post-processing fitted to logits.

Accuracy and F1 are fractions; Matthews and both correlations are in [-1, 1].

Thresholds and a temperature are fitted to labelled texts after training:

    logits - thresholds, or logits - log(weights)  -> predictions
    (logits - log(weights)) / temperature          -> probabilities

The values that are used later are fitted to all texts. To avoid optimistic
scores, each half of the texts is scored with values fitted on the other half.

The baseline is a linear model of the tokens of a text:

    texts -> token ids -> TF-IDF -> logistic regression, or ridge regression

It is fitted to the training examples in seconds. A network with lower scores
probably has a mistake in its data or settings.
"""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from scipy import optimize, sparse, special, stats
from sklearn import metrics as sklearn_metrics
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

from bert.common.progress import log
from bert.data import postprocessing
from bert.data.postprocessing import (
    CLASSES,
    MULTI_LABEL,
    REGRESSION,
    Labels,
    PostProcessing,
)
from bert.data.text.tokenizer import Tokenizer
from bert.tasks import class_report
from bert.tasks.classification.datasets import (
    ACCURACY,
    F1,
    MACRO_F1,
    MAE,
    MATTHEWS,
    MICRO_F1,
    PEARSON,
    SPEARMAN,
    ClassificationData,
    Split,
    TextExample,
)
from bert.tasks.classification.settings import Scoring

_BINS = 15  # as Guo et al. 2017
_POINTS = 50  # per precision-recall curve
_MAX_TEMPERATURE = 20.0
_MAX_FITTED = 10_000  # training examples; more take minutes
_STEPS = 1000


def losses(logits: np.ndarray, labels: np.ndarray, kind: str) -> np.ndarray:
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


def compute(
    metrics: tuple[str, ...], labels: np.ndarray, predicted: np.ndarray
) -> dict[str, float]:
    """Computes metrics.

    Args:
        metrics: names of metrics in `METRICS`.
        labels: the labels, [N] or [N, C].
        predicted: the predictions, in the same shape.

    Returns:
        metric -> value; correlations with a constant are 0.
    """
    return {name: float(METRICS[name](labels, predicted)) for name in metrics}


def ranking(
    queries: list[str], relevant: np.ndarray, ranks: np.ndarray
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

    gains, reciprocals, shares = 1 / np.log2(np.arange(2, 12)), [], []
    for chosen in rows.values():
        hits = relevant[chosen][np.argsort(-ranks[chosen], kind="stable")]
        if hits.min() == hits.max():
            continue
        best, top = np.sort(hits)[:-11:-1], hits[:10]
        shares.append((top @ gains[: len(top)]) / (best @ gains[: len(best)]))
        reciprocals.append(top.max() / (1 + top.argmax()))
    if not shares:
        return {}
    return {
        "mrr@10": float(np.mean(reciprocals)),
        "ndcg@10": float(np.mean(shares)),
    }


def _correlation(function: Callable) -> Callable:
    """Makes a correlation that is 0 for constants, where it is undefined."""

    def correlate(labels: np.ndarray, predicted: np.ndarray) -> float:
        if np.ptp(labels) == 0 or np.ptp(predicted) == 0:
            return 0.0
        return function(labels, predicted)

    return correlate


# F1 of class 1, as for MRPC and QQP.
_f1 = functools.partial(sklearn_metrics.f1_score, zero_division=0.0)

METRICS = {
    ACCURACY: sklearn_metrics.accuracy_score,
    F1: _f1,
    # Pools the counts of all labels of all examples.
    MICRO_F1: lambda labels, predicted: _f1(labels.ravel(), predicted.ravel()),
    # The unweighted mean over the classes.
    MACRO_F1: functools.partial(_f1, average="macro"),
    MATTHEWS: _correlation(sklearn_metrics.matthews_corrcoef),
    PEARSON: _correlation(lambda *both: stats.pearsonr(*both).statistic),
    MAE: sklearn_metrics.mean_absolute_error,
    SPEARMAN: _correlation(lambda *both: stats.spearmanr(*both).statistic),
}


@dataclasses.dataclass(frozen=True)
class Fitted:
    """Fitted thresholds and temperature, with their evaluation.

    Attributes:
        decision: post-processing, fitted to all examples.
        before: predictions without post-processing, see
            `postprocessing.predictions`.
        predictions: cross-fitted predictions. Each half of the examples is
            predicted with the values fitted on the other half.
        report: dict. Entries for `eval_report.write`.
    """

    decision: PostProcessing
    before: np.ndarray
    predictions: np.ndarray
    report: dict


def fit(
    logits: np.ndarray,
    gold: np.ndarray,
    data: ClassificationData,
    scoring: Scoring,
) -> Fitted:
    """Fits thresholds and a temperature, as the settings request.

    Args:
        logits: float32 [N, C].
        gold: the labels of the N examples, see `Split.labels`.
        data: labels with recorded post-processing, metrics, class weights.
        scoring: the settings.
    """
    labels, kind = data.labels, data.labels.kind
    names: tuple[str, ...] = ()
    if scoring.tune_thresholds:
        names, margins, is_one = _margins(logits, gold, labels, scoring)

    def fit_to(rows: np.ndarray) -> PostProcessing:
        decision = labels.decision
        if names:
            columns = zip(names, margins[rows].T, is_one[rows].T)
            thresholds = {name: cut_of(x, y) for name, x, y in columns}
            in_order = tuple(thresholds.get(name, 0.0) for name in labels.names)
            decision = dataclasses.replace(decision, thresholds=in_order)
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
    before = postprocessing.predictions(logits, kind)
    chances_before = postprocessing.probabilities(logits, kind)
    predictions, chances = before.copy(), chances_before.copy()
    for rows in (is_first, ~is_first) if len(gold) > 1 else ():
        decision = fit_to(~rows)
        predictions[rows] = postprocessing.predictions(
            logits[rows], kind, decision
        )
        chances[rows] = postprocessing.probabilities(
            logits[rows], kind, decision
        )
    decision = fit_to(np.ones(len(gold), bool))

    report: dict = {}
    if names:
        thresholds = dict(zip(labels.names, decision.thresholds))
        report["cuts"] = {name: thresholds[name] for name in names}
        report["curves"] = _curves(names, margins, is_one)
    if scoring.calibrate:
        report["calibration"] = {
            "temperature": decision.temperature,
            "before": calibration(chances_before, gold, before, kind),
            "after": calibration(chances, gold, predictions, kind),
        }
    report["before_tuning"] = compute(_names(data), gold, before)
    return Fitted(decision, before, predictions, report)


def log_fitted(
    fitted: Fitted, split: Split, data: ClassificationData, scoring: Scoring
) -> None:
    """Prints fitted values, with the scores before and after.

    Args:
        fitted: the result of `fit`.
        split: the file that they are fitted to.
        data, scoring: the arguments of `fit`.
    """
    report, labels, gold = fitted.report, data.labels, split.labels
    if cuts := report.get("cuts"):
        if labels.kind == CLASSES and not scoring.positive_label:
            log(f"--positive_label={next(iter(cuts))}, the rarer label")
        before, after = (
            class_report.per_class(gold, found, labels.names)
            for found in (fitted.before, fitted.predictions)
        )
        shown = ", ".join(
            f"{name} {cut:.4g} (F1 {before[name]['f1']:.4f} -> "
            f"{after[name]['f1']:.4f})"
            for name, cut in cuts.items()
        )
        log(f"logit thresholds, fitted for F1 on {split.path}: {shown}")
    if found := report.get("calibration"):
        log(
            f"temperature {found['temperature']:.4g}, fitted on {split.path}: "
            f"expected calibration error {found['before']['error']:.4f} -> "
            f"{found['after']['error']:.4f}"
        )

    after = compute(_names(data), gold, fitted.predictions)
    changes = ", ".join(
        f"{name} {value:.4f} -> {after[name]:.4f}"
        for name, value in report["before_tuning"].items()
    )
    log(
        f"{split.path}, before -> after tuning: {changes} (cross-fitted on two "
        "halves; later predictions use values fitted on the whole file)"
    )


def _names(data: ClassificationData) -> tuple[str, ...]:
    """The metrics to compare, as one may rise at the cost of another."""
    return (*dict.fromkeys((*data.metrics, MACRO_F1)),)


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
        gold: the labels, see `losses`.
        kind: the kind of labels.

    Returns:
        the divisor of the logits with the lowest cross entropy.
    """
    result = optimize.minimize_scalar(
        lambda x: losses(logits * np.exp(-x), gold, kind).mean(),
        bounds=(-np.log(_MAX_TEMPERATURE), np.log(_MAX_TEMPERATURE)),
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
        sure = postprocessing.predicted_probabilities(chances, predicted)
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


def _margins(
    logits: np.ndarray, gold: np.ndarray, labels: Labels, scoring: Scoring
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
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
    names: tuple[str, ...], margins: np.ndarray, is_one: np.ndarray
) -> dict[str, list[list[float]]]:
    """Name -> threshold, precision and recall at points of the curve.

    Args:
        names, margins, is_one: the result of `_margins`.
    """
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


def tfidf_predictions(
    train: Split, split: Split, kind: str, tokenizer: Tokenizer
) -> np.ndarray | None:
    """Fits the baseline, and predicts the texts of a file.

    Args:
        train: the training examples.
        split: the N examples of the file.
        kind: the kind of labels.
        tokenizer: the network's tokenizer; texts are not truncated.

    Returns:
        predictions, see `postprocessing.predictions`; None if the training
        texts have no tokens.
    """
    order = np.random.default_rng(0).permutation(len(train.examples))
    drawn = order[:_MAX_FITTED]
    bags = _bags([train.examples[i] for i in drawn], tokenizer)
    if not any(bags):
        return None
    vectorizer = TfidfVectorizer(analyzer=list, sublinear_tf=True)
    known = vectorizer.fit_transform(bags)
    new = vectorizer.transform(_bags(split.examples, tokenizer))

    gold = train.labels[drawn]
    if kind == REGRESSION:
        return Ridge().fit(known, gold).predict(new)
    if kind == MULTI_LABEL:
        return np.stack([_classes(known, y, new) for y in gold.T], -1)
    return _classes(known, gold, new)


def _bags(examples: list[TextExample], tokenizer: Tokenizer) -> list[list[int]]:
    """The token ids of both texts of each example."""
    lines = [f"{example.text} {example.text_b}" for example in examples]
    return tokenizer.fast.ids_of_lines(lines)


def _classes(
    known: sparse.csr_matrix, gold: np.ndarray, new: sparse.csr_matrix
) -> np.ndarray:
    """Predicts classes, or the presence of one label, int [N]."""
    if np.ptp(gold) == 0:  # only one class
        return np.full(new.shape[0], gold[0])
    return LogisticRegression(max_iter=_STEPS).fit(known, gold).predict(new)
