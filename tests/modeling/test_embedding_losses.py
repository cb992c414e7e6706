"""Losses of vectors against NumPy, also over two devices."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from bert.data import feature_names
from bert.modeling import dropout
from bert.modeling import embedding_losses as losses
from bert.modeling.task_heads import COSENT, COSINE, RANKING
from bert.training.optimization import AdamWeightDecay
from bert.training.train_step import TrainStep
from tests.helpers import tiny

B, H, SCALE = 6, 5, 7.0
SIZES = (5, 2)  # of the vectors that the losses see
NUMBERS = np.arange(3 * B).reshape(B, 3)
NUMBERS[1, 1] = NUMBERS[0, 1]  # equal second texts
NUMBERS[2, 0] = NUMBERS[5, 0]  # equal first texts
NUMBERS[3, 2] = NUMBERS[4, 0]  # a text that another row begins with
NUMBERS[4, 2] = NUMBERS[4, 1]  # and one that is its own second text


def batch_of(texts):
    rng = np.random.default_rng(3)
    return {
        "x": rng.normal(size=(B, texts, H)).astype("f4"),
        feature_names.LABEL_IDS: np.array([0.5, -1, 0.5, 1, 0, 0.25], "f4"),
        feature_names.IS_REAL_EXAMPLE: np.ones(B, "i4"),
        feature_names.TEXT_NUMBERS: NUMBERS[:, :texts].astype("i4"),
    }


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def ranking(batch, vectors):
    numbers, total = batch[feature_names.TEXT_NUMBERS], 0.0
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
    for i, low in enumerate(batch[feature_names.LABEL_IDS]):
        for j, high in enumerate(batch[feature_names.LABEL_IDS]):
            if low < high:
                terms.append(SCALE * (cosines[i] - cosines[j]))
    return B * special.logsumexp(terms)


def cosine(batch, vectors):
    cosines = (vectors[:, 0] * vectors[:, 1]).sum(-1)
    return ((cosines - batch[feature_names.LABEL_IDS]) ** 2).sum()


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
    made = losses.EmbeddingLoss(loss, SCALE, SIZES)
    sums = made.sums(tensors, {"vectors": tensors["x"]})
    vectors = [unit(batch["x"][..., :size].astype("f8")) for size in SIZES]
    total = sum(expected(batch, x) for x in vectors)
    np.testing.assert_allclose(sums["loss"], total, rtol=1e-5)
    assert sums["weight"] == B


def steps_of(loss, replicas=1, parts=1, rate=0.0):
    """Steps of a network of one matrix, with dropout."""
    strategy = tiny.strategy_of(replicas)
    with strategy.scope():
        start = keras.initializers.RandomNormal(seed=5)
        x = keras.Input((None, H), name="x")
        y = keras.layers.Dense(7, kernel_initializer=start)(x)
        y = dropout.Dropout(rate, 1)(y)
        model = keras.Model({"x": x}, {"vectors": y})
        optimizer = AdamWeightDecay(0.01)
        optimizer.build(model.trainable_variables)
    objective = tiny.objective_of((losses.EmbeddingLoss(loss, SCALE, SIZES),))
    return TrainStep(
        model,
        objective,
        optimizer,
        strategy,
        3,
        dropout.dropout_seed,
        lambda batch: tf.constant(0.0),
        accumulation_steps=parts,
    )


def take(made, texts):
    data = tf.data.Dataset.from_tensors(batch_of(texts))
    return made.train(iter(data), tf.constant(1)).numpy()[0]


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(("loss", "texts", "expected"), CASES)
def test_devices_and_micro_batches_take_the_step_of_the_whole_batch(
    loss, texts, expected, parts
):
    """Negatives and pairs of all rows, not of a part's own."""
    made, whole = steps_of(loss, replicas=2, parts=parts), steps_of(loss)
    ours, theirs = take(made, texts), take(whole, texts)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)

    # The first moments are a tenth of the gradients.
    moments = zip(made.optimizer.adam_m, whole.optimizer.adam_m, strict=True)
    for a, b in moments:
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-7)


def test_cached_gradients_are_those_of_the_same_dropout():
    """As if the outputs of all micro-batches were kept."""
    made, batch = steps_of(RANKING, parts=3, rate=0.3), batch_of(2)
    variables = [x.value for x in made.model.trainable_variables]
    with tf.GradientTape() as tape:
        parts = []
        for i in range(3):
            with dropout.dropout_seed(tf.constant([3, 0, i])):
                rows = {"x": batch["x"][2 * i : 2 * i + 2]}
                parts.append(made.model(rows, training=True)["vectors"])
        outputs = {"vectors": tf.concat(parts, 0)}
        tensors = {name: tf.constant(x) for name, x in batch.items()}
        (one,) = made.objective.losses
        loss = one.sums(tensors, outputs)["loss"] / B
    expected = tape.gradient(loss, variables)

    total, *_, norm, _ = take(made, 2)
    assert total / B == pytest.approx(float(loss), abs=1e-6)
    assert norm == pytest.approx(float(tf.linalg.global_norm(expected)), 1e-6)
    moments = [x.numpy() for x in made.optimizer.adam_m]
    for moment, gradient in zip(moments, expected, strict=True):
        clipped = gradient / max(1.0, norm)
        np.testing.assert_allclose(moment, 0.1 * clipped, atol=1e-7)


def test_the_vectors_of_a_teacher_are_learned():
    batch = batch_of(2)
    rng = np.random.default_rng(8)
    teacher = unit(rng.normal(size=(B, 2, H))).astype("f4")
    real = np.array([1, 1, 0, 1, 1, 0], "i4")
    batch[feature_names.IS_REAL_EXAMPLE] = real
    batch[feature_names.TEACHER_OUTPUTS] = teacher.reshape(B, -1)
    variable = tf.Variable(batch["x"])
    with tf.GradientTape() as tape:
        sums = losses.TeacherDistance().sums(batch, {"vectors": variable})
        loss = sums["loss"]
    found, length = unit(batch["x"]), np.linalg.norm(batch["x"], axis=-1)
    distances = ((found - teacher) ** 2).sum(-1).mean(-1)
    np.testing.assert_allclose(loss, (distances * real).sum(), rtol=1e-6)
    assert sums["weight"] == 4

    # The derivative of |u - t|^2 by v, with u = v / |v|.
    along = (found * teacher).sum(-1, keepdims=True)
    expected = (along * found - teacher) / length[..., None]
    expected *= real[:, None, None]
    np.testing.assert_allclose(
        tape.gradient(loss, variable), expected, atol=1e-6
    )
