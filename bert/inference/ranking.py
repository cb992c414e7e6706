"""Texts in the order of their scores for a query.

    {"text": query, "texts": [...]} -> rows of the model -> their predictions
        -> {"index", "text", "score"} of each text, the best first

A classifier of pairs reads the query with each text; an embedding model
compares embeddings. No TensorFlow is imported.
"""

from typing import Annotated, TypedDict

import msgspec
import numpy as np

from bert.common.errors import UserError
from bert.tasks.classification.pipeline import RELEVANT

TEXT, TEXT_B, TEXTS = "text", "text_b", "texts"
EXPECTED = "text, and texts, a list of strings"  # in messages


class Query(TypedDict):
    """A text, and the texts that are ordered for it."""

    text: str
    texts: Annotated[list[str], msgspec.Meta(min_length=1)]


def is_query(values) -> bool:
    """Returns whether JSON values are a query."""
    return isinstance(values, dict) and TEXTS in values and TEXT_B not in values


def count(examples: list[dict]) -> int:
    """Counts examples, where each text of a query is one."""
    return sum(len(x.get(TEXTS, ())) or 1 for x in examples)


def rows_of(query: dict, reads_pairs: bool) -> list[dict[str, str]]:
    """Returns the examples that a model predicts for a query.

    Args:
        query: `text` and `texts`.
        reads_pairs: bool. Whether the model reads two texts at once.
    """
    if reads_pairs:
        return [{TEXT: query[TEXT], TEXT_B: x} for x in query[TEXTS]]
    return [{TEXT: x} for x in (query[TEXT], *query[TEXTS])]


def order(query: dict, predictions: list[dict]) -> list[dict]:
    """Orders the texts of a query.

    Args:
        query: `text` and `texts`.
        predictions: of the examples of `rows_of`.

    Returns:
        index from 0, text and score of each text, the highest score first.

    Raises:
        UserError: the model gives no scores.
    """
    if "vector" in predictions[0]:
        first, *others = (np.array(x["vector"]) for x in predictions)
        scores = [float(first @ x) for x in others]
    else:
        scores = [*map(_score, predictions)]
    ranked = [
        {"index": index, TEXT: text, "score": score}
        for index, (text, score) in enumerate(
            zip(query[TEXTS], scores, strict=True)
        )
    ]
    return sorted(ranked, key=lambda entry: -entry["score"])


def _score(prediction: dict) -> float:
    """The score of a text that was read together with its query."""
    probabilities = prediction.get("probabilities")
    if isinstance(probabilities, dict) and RELEVANT in probabilities:
        return probabilities[RELEVANT]
    if "value" in prediction:
        return prediction["value"]
    raise error()


def error() -> UserError:
    """The error of a model that gives no scores."""
    return UserError(
        "the model cannot order texts",
        expected='a classifier of pairs with the label "1", a regression of '
        "pairs, or an embedding model",
    )
