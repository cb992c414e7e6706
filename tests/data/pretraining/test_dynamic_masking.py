"""Dynamic masking."""

import dataclasses
import functools
import itertools
import random

import numpy as np
import pytest
import tensorflow as tf

from bert.data import feature_names
from bert.data.pretraining import draws, dynamic_masking, masking
from bert.data.pretraining.settings import InstanceSettings
from tests.helpers import pretraining_rows
from tests.helpers.pretraining_rows import FIRST

V = 997
OPTIONS = InstanceSettings(max_seq_length=61, max_predictions_per_seq=11)
KNOWN = pretraining_rows.vocabulary(V)
NAMES = [
    feature_names.INPUT_IDS,
    feature_names.MASKED_LM_POSITIONS,
    feature_names.MASKED_LM_IDS,
    feature_names.MASKED_LM_WEIGHTS,
    feature_names.INPUT_MASK,
]


@pytest.fixture(scope="module")
def documents():
    rng = random.Random(3)
    return [
        [
            [rng.randrange(FIRST, V) for _ in range(rng.randint(1, 19))]
            for _ in range(rng.randint(2, 17))
        ]
        for _ in range(11)
    ]


@pytest.fixture(scope="module")
def plain(documents):
    return narrow(pretraining_rows.make_rows(documents, OPTIONS, KNOWN))


@pytest.fixture(scope="module")
def packed(documents):
    options = dataclasses.replace(OPTIONS, pack_sequences=True)
    return narrow(pretraining_rows.make_rows(documents, options, KNOWN))


def narrow(arrays):
    """As the reader gives them: int32 instead of int64."""
    return {
        name: values.astype("i4") if values.dtype == "i8" else values
        for name, values in arrays.items()
    }


def remask(arrays, first=0):
    names = list(NAMES)
    if feature_names.SEQUENCE_IDS in arrays:
        names[-1] = feature_names.SEQUENCE_IDS
    found = dynamic_masking.remask_records(
        tuple(arrays[name] for name in names), OPTIONS, KNOWN, first
    )
    return {**arrays, **dict(zip(NAMES, found))}


def texts(arrays):
    """Ids without masks."""
    ids = arrays["input_ids"].copy()
    rows, columns = arrays["masked_lm_weights"].nonzero()
    positions = arrays["masked_lm_positions"][rows, columns]
    ids[rows, positions] = arrays["masked_lm_ids"][rows, columns]
    return ids


@pytest.mark.parametrize("kind", ["plain", "packed"])
def test_records_are_masked_again_as_when_they_were_created(kind, request):
    """With other numbers in each epoch."""
    before = request.getfixturevalue(kind)
    numbers = before.get("sequence_ids", before["input_mask"])
    found = []
    for first in (0, len(numbers)):
        again = remask(before, first)
        expected = masking.mask_rows(
            texts(before),
            numbers,
            OPTIONS,
            KNOWN,
            functools.partial(
                draws.rows,
                (OPTIONS.random_seed, "epochs"),
                first,
                len(numbers),
            ),
        )
        for name, values in expected.items():
            np.testing.assert_array_equal(again[name], values)
            assert again[name].dtype == before[name].dtype
        np.testing.assert_array_equal(texts(again), texts(before))
        found.append(again["masked_lm_positions"])
    for one, other in itertools.combinations(
        [*found, before["masked_lm_positions"]], 2
    ):
        assert (one != other).any(axis=1).mean() > 0.9


def test_a_data_set_resumes_with_the_same_masks(plain):
    size = 7
    rows = len(plain["input_ids"])
    batches = (
        tf.data.Dataset.from_tensor_slices(plain)
        .repeat()
        .batch(size, drop_remainder=True)
    )

    def take(step, count):
        remasked = dynamic_masking.remask_batches(
            batches.skip(step), OPTIONS, KNOWN, step
        )
        assert remasked.element_spec == batches.element_spec
        return list(remasked.take(count).as_numpy_iterator())

    straight = take(0, 2 * rows // size)
    for step, batch in enumerate(take(3, 5), start=3):
        for name, values in batch.items():
            np.testing.assert_array_equal(values, straight[step][name])
    first = {
        name: np.concatenate([batch[name] for batch in straight])[:rows]
        for name in NAMES
    }
    for name, values in remask(plain).items():
        if name in NAMES:
            np.testing.assert_array_equal(first[name], values)


def test_workers_mask_their_parts_of_each_batch(plain):
    batches = tf.data.Dataset.from_tensor_slices(plain).batch(6)

    def take(part, share):
        parts = batches.map(lambda x: {k: v[part] for k, v in x.items()})
        remasked = dynamic_masking.remask_batches(
            parts, OPTIONS, KNOWN, 3, share
        )
        return list(remasked.take(2).as_numpy_iterator())

    whole = take(slice(0, 6), (0, 1))
    for worker in range(3):
        part = slice(2 * worker, 2 * worker + 2)
        for ours, theirs in zip(take(part, (worker, 3)), whole, strict=True):
            for name, values in ours.items():
                np.testing.assert_array_equal(values, theirs[name][part])
