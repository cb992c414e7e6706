"""Texts in the order of their scores for a query.

    {"text": query, "texts": [...]} -> rows of the model -> their answers
        -> {"index", "text", "score"} of each text, the best first

A model of two texts reads the query with each of them; one of vectors compares
theirs. No TensorFlow is imported.
"""

from collections.abc import Collection, Iterator
from typing import Annotated, TypedDict

import msgspec

from bert.common.errors import UserError

EXPECTED = "text, and texts, a list of strings"  # in messages
_TEXT, _TEXT_B, _TEXTS = "text", "text_b", "texts"
_INPUTS = ([_TEXT], [_TEXT, _TEXT_B])  # of models that may take queries
_BELONGS = "1"  # label of a text that belongs to the query


class Query(TypedDict):
    """A text, and those that are ordered for it."""

    text: str
    texts: Annotated[list[str], msgspec.Meta(min_length=1)]


def is_query(values, inputs: Collection[str]) -> bool:
    """Returns whether values of JSON are a query, not texts of the inputs.

    Args:
        values: decoded.
        inputs: names of the inputs of the model.
    """
    has_texts = isinstance(values, dict) and _TEXTS in values
    return has_texts and _TEXT_B not in values and sorted(inputs) in _INPUTS


def rows_of(query: Query, inputs: Collection[str]) -> list[dict[str, str]]:
    """The rows that a model answers for a query: name of an input -> text."""
    if _TEXT_B in inputs:
        return [{_TEXT: query["text"], _TEXT_B: x} for x in query["texts"]]
    return [{_TEXT: x} for x in (query["text"], *query["texts"])]


def order(
    query: Query, inputs: Collection[str], answers: Iterator[dict]
) -> list[dict]:
    """Orders the texts of a query.

    Args:
        query: the query.
        inputs: names of the inputs of the model.
        answers: to its rows, which are taken, from `asking.to_values`.

    Returns:
        index from 0, text and score of each text, the highest score first.

    Raises:
        UserError: the model gives no scores.
    """
    rows = [next(answers) for _ in rows_of(query, inputs)]
    if "vector" in rows[0]:
        vector, *others = (row["vector"] for row in rows)
        scores = [sum(a * b for a, b in zip(vector, x)) for x in others]
    else:
        scores = [*map(_score, rows)]
    texts = enumerate(zip(query["texts"], scores, strict=True))
    ranked = [
        {"index": index, _TEXT: text, "score": round(score, 6)}
        for index, (text, score) in texts
    ]
    return sorted(ranked, key=lambda entry: -entry["score"])


def _score(answer: dict) -> float:
    """The score of a text that was read together with its query."""
    probabilities = answer.get("probabilities")
    if isinstance(probabilities, dict) and _BELONGS in probabilities:
        return probabilities[_BELONGS]
    if "value" in answer:
        return answer["value"]
    raise UserError(
        "the model cannot order texts",
        expected="a model of two texts with the label 1 or a number, or one "
        "of vectors",
    )
