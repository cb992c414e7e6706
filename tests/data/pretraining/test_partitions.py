"""Counts of a partition, and warnings about them."""

import pytest

from data.pretraining import partitions
from data.pretraining.settings import InstanceSettings

SETTINGS = InstanceSettings(max_seq_length=31, max_predictions_per_seq=5)
GOOD = {
    "documents": 10,
    "sentences": 100,
    "tokens": 2000,
    "unknown_tokens": 4,
    "instances": 50,
    "records": 50,
    "random_next": 26,
    "row_tokens": 1400,
    "predictions": 200,
    "predictions_masked": 160,
    "predictions_random": 20,
}


def test_documents_are_counted():
    documents = [[[5, 6], [1]], [[7, 8, 1 + 97]]]  # the last one marked
    assert partitions.count_documents(documents, 1, 97) == {
        "documents": 2,
        "sentences": 3,
        "tokens": 6,
        "unknown_tokens": 2,
    }


def test_shares():
    assert partitions.shares(GOOD, 31) == pytest.approx(
        {
            "unknown": 0.002,
            "fill": 1400 / (50 * 31),
            "predicted": 1 / 7,
            "masked": 0.8,
            "random": 0.1,
            "random_next": 0.52,
        }
    )


def test_a_good_corpus_has_no_warning():
    assert partitions.warnings(GOOD, SETTINGS) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"unknown_tokens": 21}, "1.1% of the tokens are [UNK]"),
        ({"documents": 60}, "1.7 sentences per document"),
        ({"random_next": 33}, "66% of the pairs are random"),
        ({"row_tokens": 770, "predictions": 110}, "the records are 50% full"),
        ({"predictions": 160}, "11.4% of the tokens are predicted"),
    ],
)
def test_warnings(changed, message):
    (line,) = partitions.warnings({**GOOD, **changed}, SETTINGS)
    assert line.startswith(message)
