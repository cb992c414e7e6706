"""Table of the metrics of all tasks.

A new metric of text classification is one entry. It is computed, selects the
best weights if it is asked for, and has its meaning in reports.
"""

from typing import NamedTuple

from bert.data.labels import CLASSES, MULTI_LABEL, REGRESSION

LOSS, ACCURACY, F1, MACRO_F1 = "loss", "accuracy", "f1", "macro_f1"
MATTHEWS = "matthews"
_OURS = "bert.tasks.classification.scores"


class Metric(NamedTuple):
    """A metric of evaluations.

    Attributes:
        meaning: str. One sentence, for reports.
        function: str. "module:function" of labels, predictions and
            sample_weight. Default: "", if a task computes the metric itself.
        kinds: tuple of str. Kinds of labels of texts for which it is reported.
            Default: ().
        on_request: tuple of str. Kinds for which it is reported only if it
            selects the best weights. Default: ().
        lower_is_better: bool. Whether a lower value is better. Default: False.
    """

    meaning: str
    function: str = ""
    kinds: tuple[str, ...] = ()
    on_request: tuple[str, ...] = ()
    lower_is_better: bool = False


_F1 = "Harmonic mean of precision and recall: 1 is perfect"
METRICS = {  # the first metric of a kind selects the best weights
    "micro_f1": Metric(
        f"{_F1}. Over all labels together: frequent ones count more.",
        f"{_OURS}:micro_f1",
        (MULTI_LABEL,),
    ),
    ACCURACY: Metric(
        "Fraction of correct predictions.",
        "sklearn.metrics:accuracy_score",
        (CLASSES, MULTI_LABEL),
    ),
    MACRO_F1: Metric(
        f"{_F1}. Mean over the labels, with equal weights.",
        f"{_OURS}:macro_f1",
        (CLASSES,),
        on_request=(MULTI_LABEL,),
    ),
    MATTHEWS: Metric(
        "Correlation of two classes: 1 is perfect, 0 is chance.",
        "sklearn.metrics:matthews_corrcoef",
        on_request=(CLASSES,),
    ),
    "pearson": Metric(
        "Linear correlation with the labels: 1 is perfect.",
        f"{_OURS}:pearson",
        (REGRESSION,),
    ),
    "spearman": Metric(
        "Correlation of the ranks with the labels': 1 is perfect.",
        f"{_OURS}:spearman",
        (REGRESSION,),
    ),
    "mae": Metric(
        "Mean distance from the label: 0 is perfect.",
        "sklearn.metrics:mean_absolute_error",
        (REGRESSION,),
        lower_is_better=True,
    ),
    LOSS: Metric(
        "Mean error per label, which training minimizes: 0 is perfect.",
        on_request=(CLASSES, MULTI_LABEL, REGRESSION),
        lower_is_better=True,
    ),
    F1: Metric(  # of the second of two classes
        f"{_F1}; 100 for question answering, where it compares words.",
        f"{_OURS}:f1",
    ),
    "precision": Metric("Fraction of the predicted labels that are correct."),
    "recall": Metric("Fraction of the true labels that are predicted."),
    "exact_match": Metric(
        "Percentage of predictions that are equal to a true answer."
    ),
    "exact": Metric(
        "Percentage of predictions that are equal to a true answer."
    ),
    "mrr@10": Metric(
        "Mean of 1 / rank of the first correct text: 1 is perfect."
    ),
    "ndcg@10": Metric(
        "Gain of the first 10 texts of each query: 1 is perfect."
    ),
}


def reported(kind: str) -> tuple[str, ...]:
    """Returns the metrics that are always reported for a kind of labels."""
    return tuple(name for name, x in METRICS.items() if kind in x.kinds)


def selecting(kind: str) -> tuple[str, ...]:
    """Returns the metrics that may select the best weights."""
    more = (name for name, x in METRICS.items() if kind in x.on_request)
    return *reported(kind), *more


def sign(name: str) -> int:
    """Returns the sign of a metric: -1 if lower is better, else 1.

    Args:
        name: str. The metric, also with a prefix, such as `eval_loss`.
    """
    lower = tuple(key for key, x in METRICS.items() if x.lower_is_better)
    return -1 if name.endswith(lower) else 1
