"""Answers of a model as views, which the demo's page draws.

A view is a dict with its `kind`, the name of a macro of `demo.html`.
"""

import math

from bert.reports.figures import NUM_COLOURS


def view(answer: dict, texts: dict) -> dict:
    """Chooses the view of an exported model's answer.

    Args:
        answer: as `predict.py` prints it.
        texts: name -> text that was asked about, or list of choices.

    Returns:
        the view.
    """
    if {"answer", "start", "end"} <= answer.keys():
        return _span(answer, texts["context"])
    if "entities" in answer:
        return _entities(answer["entities"], texts["text"])

    # Of a classifier by label, of choices in their order.
    probabilities = answer.get("probabilities")
    if isinstance(probabilities, dict):
        best = answer.get("label", "")
        if isinstance(best, list):  # of several labels
            best = ", ".join(best)
        return {
            "kind": "bars",
            "title": best or "no label",
            "rows": bars(probabilities.items()),
        }

    choices = next((x for x in texts.values() if isinstance(x, list)), None)
    if choices and isinstance(probabilities, list):
        rows = bars(zip(choices, probabilities))
        return {"kind": "bars", "title": rows[0][0], "rows": rows}

    # Any other model: a table of its outputs.
    return {"kind": "values", "rows": list(answer.items())}


def bars(pairs) -> list[tuple[str, float, float]]:
    """(name, probability, width in %) of each, highest first."""
    ordered = sorted(pairs, key=lambda pair: -pair[1])
    return [(name, p, 100 * max(0.0, min(1.0, p))) for name, p in ordered]


def _span(answer: dict, context: str) -> dict:
    start, end = answer["start"], answer["end"]
    return {
        "kind": "span",
        "answer": answer["answer"],
        "parts": (context[:start], context[start:end], context[end:]),
        "probability": answer.get("probability"),
        "null_odds": answer.get("null_odds"),
    }


def _entities(entities: list[dict], text: str) -> dict:
    """The text in parts: (part, type or "", colour, score)."""
    types = sorted({entity["type"] for entity in entities})

    # An entity, and the text between it and the one before.
    parts, done = [], 0
    for entity in sorted(entities, key=lambda entity: entity["start"]):
        start, end = entity["start"], entity["end"]
        parts.append((text[done:start], "", 0, None))
        colour = types.index(entity["type"]) % NUM_COLOURS
        score = entity.get("score")
        parts.append((text[start:end], entity["type"], colour, score))
        done = end
    parts.append((text[done:], "", 0, None))

    return {
        "kind": "entities",
        "parts": [part for part in parts if part[0]],
        "types": [(name, i % NUM_COLOURS) for i, name in enumerate(types)],
    }


def masks(sentence: str, words: list[list[tuple[str, float]]]) -> dict:
    """The view of words for the masks of a sentence.

    Args:
        sentence: with [MASK] for each.
        words: for each mask, (word, probability), best first.
    """
    parts = sentence.split("[MASK]")
    best = [ranked[0][0] for ranked in words]
    return {
        "kind": "masks",
        "parts": list(zip(parts, [*best, ""])),
        "masks": [bars(ranked) for ranked in words],
    }


def attention(tokens: list[str], weights: list[list[float]]) -> dict:
    """The view of the attention of a head: a row for each query token.

    A cell has the probability and its share of the darkest colour, by the
    square root, since most probabilities are small.
    """
    rows = [
        (token, [(p, 100 * math.sqrt(p)) for p in row])
        for token, row in zip(tokens, weights)
    ]
    return {"kind": "attention", "tokens": tokens, "rows": rows}
