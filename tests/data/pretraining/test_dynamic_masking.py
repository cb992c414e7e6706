"""Dynamic masking."""

import dataclasses
import random

import numpy as np
import pytest
import tensorflow as tf

from bert.data import feature_names
from bert.data.pretraining import dynamic_masking
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


def remask(arrays, first=0, options=OPTIONS, known=KNOWN):
    names = list(NAMES)
    if feature_names.SEQUENCE_IDS in arrays:
        names[-1] = feature_names.SEQUENCE_IDS
    found = dynamic_masking.remask_records(
        tuple(arrays[name] for name in names),
        options,
        known,
        first,
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
def test_the_text_stays_and_the_masks_change(kind, request):
    before = request.getfixturevalue(kind)
    after = remask(before)
    np.testing.assert_array_equal(texts(after), texts(before))
    changed = after["masked_lm_positions"] != before["masked_lm_positions"]
    assert changed.any(axis=1).mean() > 0.9
    for name in NAMES:
        assert after[name].dtype == before[name].dtype
        assert after[name].shape == before[name].shape
    # As many positions as before, none on a special token, none in the padding.
    np.testing.assert_array_equal(
        after["masked_lm_weights"], before["masked_lm_weights"]
    )
    real = after["masked_lm_weights"] > 0
    assert after["masked_lm_ids"][real].min() >= FIRST
    assert not after["masked_lm_ids"][~real].any()


def test_each_instance_of_a_packed_row_keeps_its_number_of_masks(packed):
    def counts(arrays):
        rows, columns = arrays["masked_lm_weights"].nonzero()
        positions = arrays["masked_lm_positions"][rows, columns]
        numbers = arrays["sequence_ids"][rows, positions]
        return sorted(zip(rows.tolist(), numbers.tolist()))

    assert counts(remask(packed)) == counts(packed)


def test_masks_depend_on_seed_epoch_and_record_alone(plain):
    rows = len(plain["input_ids"])
    whole = remask(plain)
    half = {name: values[rows // 2 :] for name, values in plain.items()}
    second = remask(half, first=rows // 2)
    for name in NAMES:
        np.testing.assert_array_equal(second[name], whole[name][rows // 2 :])
    # The masks that a row came with do not matter.
    again = remask(remask(plain, first=rows))
    np.testing.assert_array_equal(again["input_ids"], whole["input_ids"])
    for other in (
        remask(plain, first=rows),  # the next epoch
        remask(
            plain,
            options=InstanceSettings(**{**vars(OPTIONS), "random_seed": 7}),
        ),
    ):
        differ = other["masked_lm_positions"] != whole["masked_lm_positions"]
        assert differ.any(axis=1).mean() > 0.9


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
