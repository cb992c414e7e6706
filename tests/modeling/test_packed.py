"""Packed rows: each sequence has the outputs it has in a row of its own."""

import random

import numpy as np
import pytest
import tensorflow as tf

from bert.data.pretraining.settings import InstanceSettings
from bert.modeling import losses
from bert.modeling.networks import build_pretraining_model
from tests.helpers import small, tiny
from tests.helpers.pretraining_rows import (
    FIRST,
    make_rows,
    of_instances,
    to_instances,
    vocabulary,
)

OPTIONS = InstanceSettings(
    max_seq_length=61, max_predictions_per_seq=11, pack_sequences=True
)
CONFIG = small.config(max_position_embeddings=61)


@pytest.fixture(scope="module")
def rows():
    """The same instances, (one a row, several a row)."""
    rng = random.Random(5)
    documents = [
        [
            [rng.randrange(FIRST, small.V) for _ in range(rng.randint(1, 9))]
            for _ in range(rng.randint(2, 5))
        ]
        for _ in range(13)
    ]
    packed = make_rows(documents, OPTIONS, vocabulary(small.V))
    instances = to_instances(packed)
    assert len(packed["input_ids"]) < 0.7 * len(instances)
    plain = of_instances(instances, OPTIONS)
    return batch_of(plain), batch_of(packed)


def batch_of(arrays):
    batch = {
        name: tf.cast(v, tf.int32) if v.dtype == "i8" else tf.constant(v)
        for name, v in arrays.items()
    }
    batch["is_real_example"] = tf.ones(len(arrays["input_ids"]))
    return batch


def run(batch, packed):
    model = build_pretraining_model(CONFIG, seed=7, packed=packed)
    with tf.GradientTape() as tape:
        outputs = model({name: batch[name] for name in model.input})
        sums = tiny.sums_of(batch, outputs)
        weights = {x.name: x.weight(batch) for x in losses.PRETRAINING}
        loss = sum(sums[f"{x}_loss"] / weights[x] for x in weights)
    gradients = tape.gradient(loss, model.trainable_variables)
    return sums, weights, outputs, model, gradients


def test_packed_losses_and_gradients_equal_unpacked_ones(rows):
    plain, weights, outputs, model, gradients = run(rows[0], packed=False)
    packed, packed_weights, packed_outputs, other, others = run(rows[1], True)
    for name, value in plain.items():
        np.testing.assert_allclose(packed[name], value, rtol=1e-5)
    for name, value in weights.items():
        np.testing.assert_allclose(packed_weights[name], value)
    real = rows[1]["next_sentence_weights"].numpy() > 0
    np.testing.assert_allclose(
        packed_outputs["next_sentence_logits"].numpy()[real],
        outputs["next_sentence_logits"],
        atol=1e-5,
    )
    paths = [variable.path for variable in model.trainable_variables]
    assert paths == [variable.path for variable in other.trainable_variables]
    for path, ours, theirs in zip(paths, gradients, others, strict=True):
        ours, theirs = (tf.convert_to_tensor(g).numpy() for g in (ours, theirs))
        np.testing.assert_allclose(ours, theirs, atol=1e-5, err_msg=path)
