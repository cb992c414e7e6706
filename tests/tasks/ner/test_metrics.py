"""Entities in every scheme, and their scores, by the definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert.tasks.ner import entities, metrics

LABEL = st.sampled_from(
    ["O", *(f"{x}-{kind}" for x in "BIESLU" for kind in ("PER", "x-y"))]
)


def entities_of(labels):
    """Entities of any labels, by whether each word continues the one before."""
    found = []
    for i, (before, label) in enumerate(zip(["O", *labels], labels)):
        continues = before[0] in "BI" and label[0] in "IEL"
        if label == "O":
            continue
        if continues and before[2:] == label[2:]:
            start, _, kind = found.pop()
            found.append((start, i + 1, kind))
        else:
            found.append((i, i + 1, label[2:]))
    return found


@given(st.lists(LABEL, max_size=12))
def test_entities_are_those_of_conlleval(labels):
    """In every scheme, and in sequences that are invalid in all."""
    found = entities_of(labels)
    assert entities.find(labels) == found
    bio = ["O"] * len(labels)
    for start, limit, kind in found:
        bio[start:limit] = [f"B-{kind}"] + [f"I-{kind}"] * (limit - start - 1)
    assert entities.to_bio(labels) == bio
    assert entities.kind_of(labels) == entities.ENTITIES


def test_labels_of_types():
    assert entities.bio_labels(["PER", "LOC", "PER"]) == [
        "O",
        "B-LOC",
        "I-LOC",
        "B-PER",
        "I-PER",
    ]
    known = {"O", "B-A", "S-A", "U-A", "L-A"}
    assert all(map(entities.is_entity_label, known))
    for label in ("NN", "B-", "B_PER", "X-PER", "o", "-LRB-", "B-A\n"):
        assert not entities.is_entity_label(label), label
    assert entities.kind_of(["O", "NN"]) == entities.ANY


@given(st.lists(st.lists(st.tuples(LABEL, LABEL), max_size=6), max_size=4))
def test_scores_are_those_of_the_definition(sentences):
    """Of all entities and of each type; 0 if nothing is to be divided by."""
    gold, found = ([[pair[i] for pair in x] for x in sentences] for i in (0, 1))
    true, guessed = (
        {(i, *x) for i, labels in enumerate(y) for x in entities_of(labels)}
        for y in (gold, found)
    )
    equal = [a == b for x in sentences for a, b in x]
    expected = {"accuracy": sum(equal) / len(equal) if equal else 0.0}
    for kind in ("", *{x[-1] for x in true | guessed}):
        a, b = ({x for x in y if x[-1].endswith(kind)} for y in (true, guessed))
        end = f"_{kind}" if kind else ""
        right = len(a & b)
        expected[f"precision{end}"] = right / len(b) if b else 0.0
        expected[f"recall{end}"] = right / len(a) if a else 0.0
        expected[f"f1{end}"] = 2 * right / (len(a) + len(b)) if right else 0.0
    assert metrics.score_entities(gold, found) == pytest.approx(expected)
    accuracy = {"accuracy": expected["accuracy"]}
    assert metrics.score_labels(gold, found) == accuracy
