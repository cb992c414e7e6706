"""Titles, units and meanings of the quantities in a report, by name."""

from typing import NamedTuple

from bert.tasks.metrics import METRICS


class Quantity(NamedTuple):
    """A quantity of a run.

    Attributes:
        title: str. Title of its figure.
        unit: str. Unit of its axis.
        meaning: str. One sentence; "" if it is not known.
        has_zero: bool. Whether its axis begins at 0. Default: False.
    """

    title: str
    unit: str
    meaning: str
    has_zero: bool = False


_NEXT = "whether the second text follows the first in the corpus"
_SPEED = "per second of training, without the first call, which compiles."
KNOWN = {
    "loss": Quantity("Loss", "nats", METRICS["loss"].meaning),
    "accuracy": Quantity(
        "Accuracy", "fraction of labels", METRICS["accuracy"].meaning
    ),
    "masked_lm_loss": Quantity(
        "Masked LM: loss",
        "nats",
        "Mean -log(probability of the hidden token): 0 is perfect.",
    ),
    "masked_lm_accuracy": Quantity(
        "Masked LM: accuracy",
        "fraction of masks",
        "Fraction of the masked tokens that are predicted correctly.",
    ),
    "next_sentence_loss": Quantity(
        "Next sentence: loss",
        "nats",
        f"Mean -log(probability of the correct answer) to {_NEXT}.",
    ),
    "next_sentence_accuracy": Quantity(
        "Next sentence: accuracy",
        "fraction of pairs",
        f"Fraction of correct answers to {_NEXT}.",
    ),
    "learning_rate": Quantity(
        "Learning rate", "learning rate", "Size of the training steps.", True
    ),
    "gradient_norm": Quantity(
        "Gradient norm",
        "L2 norm before clipping",
        "Length of the gradient: peaks indicate unstable training.",
        True,
    ),
    "examples_per_second": Quantity(
        "Throughput: examples",
        "examples per second",
        f"Examples {_SPEED}",
        True,
    ),
    "tokens_per_second": Quantity(
        "Throughput: tokens", "tokens per second", f"Tokens {_SPEED}", True
    ),
}
_REFERENCES = {
    "majority": "Baseline: predict the most frequent label.",
    "chance": "Baseline: predict all labels with equal probability.",
    "frequencies": "Baseline: predict each label with its frequency.",
    "tfidf": "Baseline: linear model of words, fitted to the same examples.",
    "frozen": "Baseline: linear model of the encoder before fine-tuning.",
    "unigrams": "Baseline: predict each token with its corpus frequency.",
}


def of(name: str) -> Quantity:
    """Quantity of a curve; an unknown one has its name as the title."""
    text = name.replace("_", " ")
    title = text[:1].upper() + text[1:]
    meaning = METRICS[name].meaning if name in METRICS else ""
    return KNOWN.get(name, Quantity(title, text, meaning))


def meaning(name: str) -> str:
    """Meaning of `metric` or `metric/baseline`; "" if it is not known."""
    metric, _, kind = name.partition("/")
    if kind:
        return _REFERENCES.get(kind, "")
    return of(metric.removeprefix("eval_")).meaning
