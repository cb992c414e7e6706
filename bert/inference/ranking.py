"""Ranks texts by their scores for a query.

    {"text": query, "texts": [...]} -> examples -> predictions
        -> {"index", "text", "score"} of each text, the best first

A pair classifier reads the query together with each text. An embedding model
compares the embeddings. This module does not import TensorFlow.
"""

from typing import Annotated, TypedDict

import msgspec
import numpy as np

from bert.common.errors import UserError
from bert.tasks.classification.task import RELEVANT

TEXT, TEXT_B, TEXTS = "text", "text_b", "texts"
EXPECTED = "text, and texts, a list of strings"  # in messages


class Query(TypedDict):
    """A query text, and the texts to rank."""

    text: str
    texts: Annotated[list[str], msgspec.Meta(min_length=1)]


def is_query(values) -> bool:
    """Returns whether a JSON value is a query."""
    return isinstance(values, dict) and TEXTS in values and TEXT_B not in values


def count(examples: list[dict]) -> int:
    """Counts examples; each text of a query is an example."""
    return sum(len(x.get(TEXTS, ())) or 1 for x in examples)


def rows_of(query: dict, reads_pairs: bool) -> list[dict[str, str]]:
    """Returns the examples to predict for a query.

    Args:
        query: dict. `text` and `texts`.
        reads_pairs: bool. Whether the model reads two texts at once.
    """
    if reads_pairs:
        return [{TEXT: query[TEXT], TEXT_B: x} for x in query[TEXTS]]
    return [{TEXT: x} for x in (query[TEXT], *query[TEXTS])]


def order(query: dict, predictions: list[dict]) -> list[dict]:
    """Sorts the texts of a query by score.

    Args:
        query: dict. `text` and `texts`.
        predictions: list of dict. Predictions of the examples of `rows_of`.

    Returns:
        a list of dicts with index, from 0, text and score, the highest score
        first.

    Raises:
        UserError: The predictions have no score.
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
    """Returns the score of a text that was read together with its query."""
    probabilities = prediction.get("probabilities")
    if isinstance(probabilities, dict) and RELEVANT in probabilities:
        return probabilities[RELEVANT]
    if "value" in prediction:
        return prediction["value"]
    raise error()


def error() -> UserError:
    """Returns the error of a model that cannot rank texts."""
    return UserError(
        "the model cannot rank texts",
        expected='a pair classifier with the label "1", a pair regressor, or '
        "an embedding model",
    )
