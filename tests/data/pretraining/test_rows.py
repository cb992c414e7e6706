"""Records of a pass: their counts, and what other programs read in them."""

import dataclasses
import random

import numpy as np
import pytest
import tensorflow as tf

from bert.data import feature_names
from bert.data.pretraining import packing
from bert.data.pretraining import rows as rows_module
from bert.data.pretraining.settings import InstanceSettings
from tests.helpers.pretraining_rows import (
    FIRST,
    make_rows,
    tokenized,
    vocabulary,
)

V = 30_011
KNOWN = vocabulary(V, range(FIRST, V, 3))
SETTINGS = {
    "plain": InstanceSettings(max_seq_length=61, max_predictions_per_seq=11),
    # Positions above 127 take two bytes.
    "long": InstanceSettings(max_seq_length=307, max_predictions_per_seq=47),
    "words": InstanceSettings(do_whole_word_mask=True, max_ngram=3),
    "packed": InstanceSettings(max_seq_length=307, pack_sequences=True),
}


@pytest.fixture(scope="module")
def documents():
    rng = random.Random(7)
    return [
        [
            # Small ids are frequent, so that ids take one to three bytes.
            [
                rng.randrange(FIRST, rng.choice([100, 1000, V]))
                for _ in range(rng.randint(1, 29))
            ]
            for _ in range(rng.randint(1, 13))
        ]
        for _ in range(41)
    ]


def schema_of(settings):
    lengths = settings.max_seq_length, settings.max_predictions_per_seq
    if not settings.pack_sequences:
        return feature_names.pretraining_schema(*lengths)
    count = packing.max_sequences_per_row(lengths[0])
    return feature_names.packed_schema(*lengths, count)


def make(documents, settings, **named):
    named = {"number": 3, "partition": 2, "vocabulary": KNOWN, **named}
    return rows_module.make_records(
        tokenized(documents), settings=settings, **named
    )


@pytest.mark.parametrize("name", SETTINGS)
def test_records_are_parsed_to_the_rows(documents, name):
    settings = SETTINGS[name]
    rows = make_rows(documents, settings, KNOWN, number=3, partition=2)
    encoded, counts = make(documents, settings)
    parsing = {
        name: tf.io.FixedLenFeature([length], tf.as_dtype(kind))
        for name, (kind, length) in schema_of(settings).items()
    }
    parsed = tf.io.parse_example(encoded, parsing)
    assert parsed.keys() == rows.keys()
    for feature, values in parsed.items():
        np.testing.assert_array_equal(values, rows[feature], feature)
    assert counts["instances"] > 50
    assert counts == counted(rows)


def counted(rows):
    """Counts each instance and each masked token by itself."""
    keys = "instances random_next row_tokens predictions".split()
    keys += ["predictions_masked", "predictions_random"]
    counts = dict.fromkeys(keys, 0)
    for row in range(len(rows["input_ids"])):
        real = rows.get("next_sentence_weights", np.ones((row + 1, 1)))[row]
        counts["instances"] += int(real.sum())
        counts["random_next"] += int(rows["next_sentence_labels"][row].sum())
        counts["row_tokens"] += int(rows["input_mask"][row].sum())
        for position, label, weight in zip(
            rows["masked_lm_positions"][row],
            rows["masked_lm_ids"][row],
            rows["masked_lm_weights"][row],
        ):
            if weight:
                found = rows["input_ids"][row, position]
                counts["predictions"] += 1
                counts["predictions_masked"] += int(found == KNOWN.mask_id)
                counts["predictions_random"] += int(
                    found not in (KNOWN.mask_id, label)
                )
    return counts


@pytest.mark.parametrize("name", SETTINGS)
def test_records_do_not_depend_on_the_size_of_a_block(
    documents, name, monkeypatch
):
    whole, counts = make(documents, SETTINGS[name])
    monkeypatch.setattr(rows_module, "_CELLS_AT_ONCE", 3001)
    blocks, again = make(documents, SETTINGS[name])
    assert blocks == whole
    assert again == counts


@pytest.mark.parametrize("name", ["plain", "packed"])
def test_a_share_of_no_documents_gives_no_records(documents, name):
    encoded, counts = make(documents, SETTINGS[name], fraction=0.0)
    assert encoded == []
    assert set(counts.values()) == {0}


def test_seeds_partitions_and_passes_have_masks_of_their_own():
    documents = [[[FIRST] * 29]] * 101  # all rows are the same
    found = []
    for changed in ({}, {"random_seed": 7}, {"partition": 3}, {"number": 4}):
        settings = SETTINGS["plain"]
        if "random_seed" in changed:
            settings = dataclasses.replace(settings, **changed)
            changed = {}
        rows = make_rows(documents, settings, KNOWN, **changed)
        found.append(rows["masked_lm_positions"])
    for other in found[1:]:
        assert (other != found[0]).any(axis=1).mean() > 0.9
