"""Losses of vectors against NumPy, also over two devices."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from bert.data import features
from bert.modeling import task_losses
from bert.tasks.similarity import losses
from bert.tasks.similarity.examples import TEXT_NUMBERS
from bert.tasks.similarity.settings import COSENT, COSINE, RANKING
from tests.helpers import tiny

B, H, SCALE = 6, 5, 7.0
NUMBERS = np.arange(3 * B).reshape(B, 3)
NUMBERS[1, 1] = NUMBERS[0, 1]  # equal second texts
NUMBERS[2, 0] = NUMBERS[5, 0]  # equal first texts
NUMBERS[3, 2] = NUMBERS[4, 0]  # a text that another row begins with
NUMBERS[4, 2] = NUMBERS[4, 1]  # and one that is its own second text


def batch_of(texts):
    rng = np.random.default_rng(3)
    return {
        "x": rng.normal(size=(B, texts, H)).astype("f4"),
        features.LABEL_IDS: np.array([0.5, -1, 0.5, 1, 0, 0.25], "f4"),
        features.IS_REAL_EXAMPLE: np.ones(B, "i4"),
        TEXT_NUMBERS: NUMBERS[:, :texts].astype("i4"),
    }


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def ranking(batch, vectors):
    numbers, total = batch[TEXT_NUMBERS], 0.0
    for i, (anchor, positive, *_) in enumerate(numbers):
        scores = []
        for j, row in enumerate(numbers):
            for t in range(1, len(row)):
                score = SCALE * vectors[i, 0] @ vectors[j, t]
                if (i, 1) == (j, t):
                    own = score
                elif row[t] in (anchor, positive) or (t, row[0]) == (1, anchor):
                    continue
                scores.append(score)
        total += special.logsumexp(scores) - own
    return total


def cosent(batch, vectors):
    cosines = (vectors[:, 0] * vectors[:, 1]).sum(-1)
    terms = [0.0]
    for i, low in enumerate(batch[features.LABEL_IDS]):
        for j, high in enumerate(batch[features.LABEL_IDS]):
            if low < high:
                terms.append(SCALE * (cosines[i] - cosines[j]))
    return B * special.logsumexp(terms)


def cosine(batch, vectors):
    cosines = (vectors[:, 0] * vectors[:, 1]).sum(-1)
    return ((cosines - batch[features.LABEL_IDS]) ** 2).sum()


CASES = [
    (COSENT, 2, cosent),
    (COSINE, 2, cosine),
    (RANKING, 2, ranking),
    (RANKING, 3, ranking),
]


@pytest.mark.parametrize(("loss", "texts", "expected"), CASES)
def test_losses_equal_numpy(loss, texts, expected):
    batch = batch_of(texts)
    tensors = {name: tf.constant(x) for name, x in batch.items()}
    sums = losses.sums_of(loss, SCALE)(tensors, {"vectors": tensors["x"]})
    vectors = unit(batch["x"].astype("f8"))
    np.testing.assert_allclose(
        sums["labels_loss"], expected(batch, vectors), rtol=1e-5
    )
    assert sums["labels_weight"] == B


def steps_of(replicas, loss):
    """Steps of a network of one matrix, and its weights after some."""
    made = tiny.make_steps(replicas)
    with made.strategy.scope():
        start = keras.initializers.RandomNormal(seed=5)
        x = keras.Input((None, H), name="x")
        dense = keras.layers.Dense(7, kernel_initializer=start)
        made.model = keras.Model({"x": x}, {"vectors": dense(x)})
        made.optimizer = type(made.optimizer)(0.01)
        made.optimizer.build(made.model.trainable_variables)
    return tiny.again(
        made,
        objectives=(task_losses.LABELS,),
        batch_weights=task_losses.label_weights,
        batch_sums=losses.sums_of(loss, SCALE),
    )


@pytest.mark.parametrize(("loss", "texts", "expected"), CASES)
def test_two_devices_take_the_step_of_one(monkeypatch, loss, texts, expected):
    """Negatives and pairs of all rows, not of a device's own."""
    monkeypatch.setattr(tiny, "tokens", lambda batch: tf.constant(0.0))
    rows, ends = [], []
    for replicas in (1, 2):
        made = steps_of(replicas, loss)
        data = tf.data.Dataset.from_tensors(batch_of(texts)).repeat()
        rows.append(made.train(iter(data), tf.constant(3)).numpy())
        ends.append(tiny.tensors(made))
    np.testing.assert_allclose(rows[1], rows[0], rtol=1e-5)
    for ours, theirs in zip(*ends, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
