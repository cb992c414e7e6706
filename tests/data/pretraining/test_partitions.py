"""Counts of a partition, and warnings about them."""

import pytest

from data.pretraining import instances, partitions
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
MASK = 4


def instance(ids, positions, labels, is_random):
    return instances.Instance(
        ids=ids,
        segment_ids=[0] * len(ids),
        is_random_next=is_random,
        masked_lm_positions=positions,
        masked_lm_ids=labels,
    )


def test_instances_are_counted():
    found = partitions.count_instances(
        [
            # masked, replaced, kept
            instance([2, MASK, 7, 8, 3], [1, 2, 3], [5, 6, 8], True),
            instance([2, MASK, 3], [1], [9], False),
        ],
        MASK,
    )
    assert found == {
        "instances": 2,
        "random_next": 1,
        "row_tokens": 8,
        "predictions": 4,
        "predictions_masked": 2,
        "predictions_random": 1,
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
