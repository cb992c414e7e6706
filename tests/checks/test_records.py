"""Which pieces records are made of, and whether that looks like text."""

import numpy as np
import pytest

from checks import records
from checks.record_statistics import Statistics

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]"]
CASED = {t: i for i, t in enumerate([*TOKENS, "the", "The", "."])}
LOWER = {t: i for i, t in enumerate([*TOKENS, "the", "##s", "."])}


def judge(vocab, **targets):
    """Messages about records in which pieces were hidden so often."""
    counts = np.zeros(len(vocab), np.int64)
    for token, count in targets.items():
        counts[vocab[token]] = count
    found = records.check_pieces(
        Statistics({}, counts, True, {}), vocab, "r.tfrecord"
    )
    return [(x.level, x.message.removeprefix("r.tfrecord: ")) for x in found]


def test_text_of_the_vocabulary_is_fine():
    assert judge(LOWER, **{"the": 900, ".": 1100, "[UNK]": 7}) == [
        ("fine", "most frequent pieces: . the [UNK]")
    ]
    (found,) = judge(CASED, **{"the": 900, "The": 100, ".": 1000})
    assert found == ("fine", "most frequent pieces: . the The")


def test_pieces_that_no_text_has():
    _, (level, message) = judge(LOWER, **{"the": 990, "[unused1]": 10})
    assert level == "suspicious"
    assert message == (
        "1.0% of the pieces are [unused1] and the like, which no text has; is "
        "it the vocabulary of these records?"
    )


def test_text_without_capitals_in_a_cased_vocabulary():
    _, (level, message) = judge(CASED, **{"the": 999, "The": 1})
    assert level == "suspicious"
    assert message.startswith(
        "0.10% of the pieces have a capital letter, in a vocabulary that has "
    )
    assert len(judge(CASED, the=999)) == 1  # too few to say


def test_the_loss_of_knowing_frequencies_alone():
    targets = np.array([0, 50, 25, 25])
    loss = records.unigram_loss(Statistics({}, targets, True, {}))
    assert loss == pytest.approx(1.5 * np.log(2))
