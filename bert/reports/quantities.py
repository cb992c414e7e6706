"""Titles, units and meanings of what a report shows, by name."""

from typing import NamedTuple


class Quantity(NamedTuple):
    """A quantity of a run.

    Attributes:
        title: of its figure.
        unit: of its axis.
        meaning: a sentence; "" if it is not known.
    """

    title: str
    unit: str
    meaning: str


_LOSS = "Mean error per label that training lowers: 0 is perfect."
_F1 = "Harmonic mean of precision and recall: 1 is perfect"
_NEXT = "whether the second text follows the first in the corpus"
_SPEED = "in a second of training, without the first call, which compiles."
KNOWN = {
    "loss": Quantity("Loss", "nats", _LOSS),
    "accuracy": Quantity(
        "Accuracy", "share of labels", "Share of the answers that are right."
    ),
    "masked_lm_loss": Quantity(
        "Masked LM: loss",
        "nats",
        "Mean -log(probability of the hidden token): 0 is perfect.",
    ),
    "masked_lm_accuracy": Quantity(
        "Masked LM: accuracy",
        "share of masks",
        "Share of the hidden tokens that are guessed right.",
    ),
    "next_sentence_loss": Quantity(
        "Next sentence: loss",
        "nats",
        f"Mean -log(probability of the right answer) to {_NEXT}.",
    ),
    "next_sentence_accuracy": Quantity(
        "Next sentence: accuracy",
        "share of pairs",
        f"Share of right answers to {_NEXT}.",
    ),
    "learning_rate": Quantity(
        "Learning rate", "learning rate", "Size of the steps of training."
    ),
    "gradient_norm": Quantity(
        "Gradient norm",
        "L2 norm before clipping",
        "Length of the gradient: peaks tell of unstable training.",
    ),
    "examples_per_second": Quantity(
        "Throughput: examples", "examples per second", f"Examples {_SPEED}"
    ),
    "tokens_per_second": Quantity(
        "Throughput: tokens", "tokens per second", f"Tokens {_SPEED}"
    ),
}
_METRICS = {
    "f1": f"{_F1}; 100 for answers in a text, where it compares words.",
    "macro_f1": f"{_F1}. Mean over the labels: each counts the same.",
    "micro_f1": f"{_F1}. Over all labels together: frequent ones count more.",
    "precision": "Share of what was predicted that is right.",
    "recall": "Share of what there is that was predicted.",
    "exact_match": "Percentage of the answers that are equal to a label.",
    "exact": "Percentage of the answers that are equal to a label.",
    "matthews": "Correlation of two classes: 1 is perfect, 0 is chance.",
    "mrr@10": "Mean of 1 / rank of the first right text: 1 is perfect.",
    "ndcg@10": "Gain of the first 10 texts of each query: 1 is perfect.",
    "mae": "Mean distance from the label: 0 is perfect.",
    "pearson": "Linear correlation with the labels: 1 is perfect.",
    "spearman": "Correlation of the ranks with the labels': 1 is perfect.",
}
_REFERENCES = {
    "majority": "The most frequent answer for every example.",
    "chance": "Every answer with the same probability.",
    "frequencies": "Every answer with its share of the labels.",
    "tfidf": "A linear model of the words, fitted to the same examples.",
    "unigrams": "Every token with its share of the corpus.",
}


def of(name: str) -> Quantity:
    """The quantity of a curve; its title is its name if it is not known."""
    text = name.replace("_", " ")
    title = text[:1].upper() + text[1:]
    return KNOWN.get(name, Quantity(title, text, _METRICS.get(name, "")))


def meaning(name: str) -> str:
    """A sentence about `metric` or `metric/reference`; "" if not known."""
    metric, _, kind = name.partition("/")
    if kind:
        return _REFERENCES.get(kind, "")
    return of(metric.removeprefix("eval_")).meaning
