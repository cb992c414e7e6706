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


UNNAMED = st.sampled_from(["O", *"BIESLU"])


@given(st.one_of(*(st.lists(x, max_size=12) for x in (LABEL, UNNAMED))))
def test_entities_are_those_of_conlleval(labels):
    """In every scheme, and in sequences that are invalid in all."""
    found = entities_of(labels)
    assert entities.find(labels) == found
    bio = ["O"] * len(labels)
    for start, limit, kind in found:
        end = f"-{kind}" if kind else ""
        bio[start:limit] = [f"B{end}"] + [f"I{end}"] * (limit - start - 1)
    assert entities.to_bio(labels) == bio


@pytest.mark.parametrize(
    ("labels", "marked"),
    [
        (["O"], True),
        (["B-A", "I-x-y", "O"], True),
        (["S-A", "O"], True),
        (["O", "NN"], False),
        # One type without a name.
        (["B", "I", "O"], True),
        (["B", "I", "E", "S", "O"], True),
        (["I", "O"], True),
        # Parts of sentences or of words.
        (["S", "O"], False),
        (["S", "V", "O", "I"], False),
        (["B", "I", "E", "S"], False),
        (["B", "I-A", "O"], False),
    ],
)
def test_labels_mark_entities(labels, marked):
    kind = entities.ENTITIES if marked else entities.ANY
    assert entities.kind_of(labels) == kind


def test_labels_of_types():
    assert entities.bio_labels(["PER", "LOC", "PER"]) == [
        "O",
        "B-LOC",
        "I-LOC",
        "B-PER",
        "I-PER",
    ]
    assert entities.bio_labels(["", ""]) == ["O", "B", "I"]
    known = {"O", "B-A", "S-A", "U-A", "L-A", "B", "S"}
    assert all(map(entities.is_entity_label, known))
    for label in ("NN", "B-", "B_PER", "X-PER", "o", "-LRB-", "B-A\n"):
        assert not entities.is_entity_label(label), label


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


def test_a_type_without_a_name_has_the_scores_of_all():
    found = metrics.score_entities([["B", "I", "O"]], [["B", "I", "B"]])
    names = {"accuracy", "precision", "recall", "f1"}
    assert found.keys() == names
    assert found["precision"] == 0.5 and found["recall"] == 1.0
