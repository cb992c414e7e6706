"""Fractions of records, and warnings about them."""

import dataclasses

import pytest

from bert.data.pretraining import record_fractions
from bert.data.pretraining.settings import InstanceSettings

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
    "continued_lines": 3,
}


def test_fractions():
    assert record_fractions.fractions(GOOD, 31) == pytest.approx(
        {
            "unknown": 0.002,
            "fill": 1400 / (50 * 31),
            "predicted": 1 / 7,
            "masked": 0.8,
            "random": 0.1,
            "random_next": 0.52,
            "continued": 0.03,
        }
    )


def test_a_good_corpus_has_no_warning():
    assert record_fractions.warnings(GOOD, SETTINGS) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"unknown_tokens": 21}, "1.1% of the tokens are [UNK]"),
        ({"documents": 60}, "1.7 lines per document: the corpus needs one"),
        ({"random_next": 40}, "80% of the pairs are random (usual: 70%): the "),
        (
            {"continued_lines": 26},
            "26% of the lines continue the previous line: ",
        ),
        (
            {"continued_lines": 26, "row_tokens": 770, "predictions": 110},
            "26% of the lines continue the previous line: ",
        ),
        ({"row_tokens": 770, "predictions": 110}, "the records are 50% full"),
        ({"predictions": 160}, "11.4% of the tokens are predicted"),
    ],
)
def test_warnings(changed, message):
    (line,) = record_fractions.warnings({**GOOD, **changed}, SETTINGS)
    assert line.startswith(message)


@pytest.mark.parametrize(
    ("length", "short", "measured", "of_paragraphs"),
    [
        (32, 0.1, 0.735, 0.99),
        (32, 0.3, 0.766, 0.99),
        (64, 0.1, 0.581, 0.968),
        (64, 0.3, 0.624, 0.971),
        (128, 0.1, 0.566, 0.767),
        (512, 0.1, 0.592, 0.723),
    ],
)
def test_short_sequences_have_more_random_pairs(
    length, short, measured, of_paragraphs
):
    """Shares of English Wikipedia by sentences, and by paragraphs of four."""
    settings = InstanceSettings(max_seq_length=length, short_seq_prob=short)
    for share, expected in ((measured, 0), (of_paragraphs, 1)):
        counts = {**GOOD, "random_next": 50 * share}
        lines = record_fractions.warnings(counts, settings)
        assert sum("pairs are random" in line for line in lines) == expected
    usual = record_fractions.usual_random_next(settings)
    assert usual == pytest.approx(measured, abs=0.06)


def test_packed_records_that_are_half_empty_need_more_predictions():
    packed = dataclasses.replace(SETTINGS, pack_sequences=True)
    half = {**GOOD, "row_tokens": 770, "predictions": 110}
    (line,) = record_fractions.warnings(half, packed)
    assert line.endswith("or a larger --max_predictions_per_seq wastes less")
