"""Entities in every scheme, and their scores by hand."""

import pytest

from bert.tasks.ner import entities, metrics

#        Angela  Merkel  Kohl   visits New York City   Rome
SCHEMES = {
    "iob1": "I-PER I-PER B-PER O I-LOC I-LOC I-LOC B-LOC",
    "bio": "B-PER I-PER B-PER O B-LOC I-LOC I-LOC B-LOC",
    "iobes": "B-PER E-PER S-PER O B-LOC I-LOC E-LOC S-LOC",
    "bilou": "B-PER L-PER U-PER O B-LOC I-LOC L-LOC U-LOC",
}


@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_schemes_mark_the_same_entities(scheme):
    labels = SCHEMES[scheme].split()
    assert entities.find(labels) == [
        (0, 2, "PER"),
        (2, 3, "PER"),
        (4, 7, "LOC"),
        (7, 8, "LOC"),
    ]
    assert entities.to_bio(labels) == SCHEMES["bio"].split()


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ("", []),
        ("O O", []),
        ("I-A I-B", [(0, 1, "A"), (1, 2, "B")]),
        ("B-A I-B I-B", [(0, 1, "A"), (1, 3, "B")]),
        ("O I-A O I-A", [(1, 2, "A"), (3, 4, "A")]),
        ("E-A E-A", [(0, 1, "A"), (1, 2, "A")]),
        ("B-A E-A I-A", [(0, 2, "A"), (2, 3, "A")]),
        ("S-A S-A", [(0, 1, "A"), (1, 2, "A")]),
        ("B-A B-A", [(0, 1, "A"), (1, 2, "A")]),
        ("B-x-y I-x-y", [(0, 2, "x-y")]),
    ],
)
def test_odd_sequences_are_read_as_conlleval_reads_them(labels, found):
    assert entities.find(labels.split()) == found


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


def test_scores_by_hand():
    """Of 5 entities, 5 are predicted: 1 short, 1 of the wrong type."""
    gold = ["B-PER I-PER O B-LOC", "B-LOC I-LOC B-LOC O", "B-ORG O"]
    guesses = ["B-PER I-PER O B-LOC", "B-LOC O B-LOC O", "B-PER O"]
    scores = metrics.score_entities(
        [x.split() for x in gold], [x.split() for x in guesses]
    )
    assert scores == {
        "accuracy": 8 / 10,
        "precision": 3 / 5,
        "recall": 3 / 5,
        "f1": 3 / 5,
        "precision_LOC": 2 / 3,
        "recall_LOC": 2 / 3,
        "f1_LOC": 2 / 3,
        "precision_ORG": 0.0,
        "recall_ORG": 0.0,
        "f1_ORG": 0.0,
        "precision_PER": 1 / 2,
        "recall_PER": 1.0,
        "f1_PER": 2 / 3,
    }


def test_a_chunk_that_is_predicted_in_two_parts():
    gold = [["B-NP", "O", "B-NP", "I-NP", "I-NP", "B-VP"]]
    guess = [["B-NP", "O", "B-NP", "I-NP", "B-NP", "I-VP"]]
    scores = metrics.score_entities(gold, guess)
    assert (
        scores["accuracy"] == 4 / 6
    )  # I-VP alone is an entity, but not the label
    assert scores["precision"] == 2 / 4
    assert scores["recall"] == 2 / 3
    assert scores["f1"] == pytest.approx(4 / 7)


def test_gold_and_prediction_may_be_of_different_schemes():
    gold, guess = SCHEMES["iob1"].split(), SCHEMES["iobes"].split()
    scores = metrics.score_entities([gold], [guess])
    assert scores["f1"] == 1.0
    assert scores["accuracy"] == 2 / 8  # of labels as they are written


def test_nothing_to_find():
    scores = metrics.score_entities([["O", "O"]], [["O", "O"]])
    assert scores == {"accuracy": 1, "precision": 0, "recall": 0, "f1": 0}
    scores = metrics.score_entities([["O"]], [["B-A"]])
    assert scores["precision_A"] == scores["recall"] == scores["f1"] == 0.0


def test_other_labels_have_an_accuracy():
    gold, guess = [["NN", "VB"], ["DT"]], [["NN", "NN"], ["DT"]]
    assert metrics.score_labels(gold, guess) == {"accuracy": 2 / 3}
    assert metrics.score_labels([], []) == {"accuracy": 0.0}
