"""Losses of pre-training, of all tasks and of students against NumPy."""

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st
from scipy import special

from bert.data.labels import CLASSES, MULTI_LABEL, REGRESSION
from bert.modeling import losses, task_losses
from bert.tasks.classification import scores
from tests.helpers.numpy_bert import log_softmax

B, S, P, V, C = 5, 7, 3, 13, 4
KINDS = CLASSES, MULTI_LABEL, REGRESSION


def loss_of(kind, *options):
    size = 1 if kind == REGRESSION else C
    return task_losses.of_labels(size, kind == MULTI_LABEL, *options)


def logits_of(rng, *shape):
    """Small integers, so that several classes often have the highest logit."""
    return rng.integers(-3, 4, shape).astype("f4")


def zeros_and_ones(rng, *shape):
    return rng.integers(0, 2, shape).astype("f4")


def cross_entropies(logits, labels):
    """Loss and hit of each label, [...]; the first of equal logits counts."""
    log_p = log_softmax(logits.astype("f8"))
    own = np.take_along_axis(log_p, labels[..., None], -1)[..., 0]
    return -own, log_p.argmax(-1) == labels


def sums(logits, labels, weights):
    """Sums of losses, of hits and of weights."""
    loss, hits = cross_entropies(logits, labels)
    return (loss * weights).sum(), (hits * weights).sum(), weights.sum()


def pretraining(rng):
    batch = {
        "masked_lm_ids": rng.integers(0, V, (B, P), np.int32),
        "masked_lm_weights": zeros_and_ones(rng, B, P),
        "next_sentence_labels": rng.integers(0, 2, (B, 1), np.int32),
        "is_real_example": zeros_and_ones(rng, B),
    }
    outputs = {
        "masked_lm_logits": logits_of(rng, B, P, V),
        "next_sentence_logits": logits_of(rng, B, 2),
    }
    expected = {
        "masked_lm": sums(
            outputs["masked_lm_logits"],
            batch["masked_lm_ids"],
            batch["masked_lm_weights"],
        ),
        "next_sentence": sums(
            outputs["next_sentence_logits"],
            batch["next_sentence_labels"][:, 0],
            batch["is_real_example"],
        ),
    }
    return batch, outputs, expected


def tokens(rng):
    """Tokens of weight 0 have no loss."""
    batch = {
        "label_ids": rng.integers(0, C, (B, S), np.int32),
        "label_weights": zeros_and_ones(rng, B, S),
    }
    outputs = {"logits": logits_of(rng, B, S, C)}
    expected = sums(outputs["logits"], *batch.values())
    return batch, outputs, {"token": expected}


def choices(rng):
    """Missing choices share no probability, whatever their logits."""
    batch = {
        "label_ids": rng.integers(0, C, B, np.int32),
        "choice_weights": zeros_and_ones(rng, B, C),
    }
    batch["choice_weights"][range(B), batch["label_ids"]] = 1
    outputs = {"logits": logits_of(rng, B, C)}
    there = np.where(batch["choice_weights"], outputs["logits"], -np.inf)
    expected = sums(there, batch["label_ids"], np.ones(B))
    return batch, outputs, {"choice": expected}


def spans(rng):
    """The mean loss of start and end, without padding; a hit is both."""
    lengths = rng.integers(1, S + 1, B)
    ends = rng.integers(0, lengths, (2, B), np.int32)
    batch = {
        "start_positions": ends[0],
        "end_positions": ends[1],
        "input_mask": (np.arange(S) < lengths[:, None]).astype("i4"),
    }
    logits = logits_of(rng, 2, B, S)
    outputs = {"start_logits": logits[0], "end_logits": logits[1]}
    there = np.where(batch["input_mask"], logits, -np.inf)
    loss, hits = cross_entropies(there, ends)
    return batch, outputs, {"span": (loss.sum() / 2, hits.all(0).sum(), B)}


LOSSES = {
    pretraining: losses.PRETRAINING,
    tokens: (task_losses.TokenLoss(),),
    choices: (task_losses.ChoiceLoss(),),
    spans: (task_losses.SpanLoss(),),
}


@pytest.mark.parametrize("make", LOSSES)
@hypothesis.given(st.integers(0, 2**32 - 1))
@hypothesis.settings(max_examples=20)
def test_sums_and_divisors_equal_numpy(make, seed):
    batch, outputs, expected = make(np.random.default_rng(seed))
    assert [x.name for x in LOSSES[make]] == [*expected]
    for one, (loss, hits, weight) in zip(LOSSES[make], expected.values()):
        found = one.sums(batch, outputs)
        assert found.keys() == {"loss", "accuracy", "weight"}
        np.testing.assert_allclose(found["loss"], loss, rtol=1e-5)
        assert found["accuracy"] == hits
        assert found["weight"] == weight
        least = 1e-5 if one.name == "masked_lm" else 0.0  # as in the original
        divisor = one.weight(batch)
        np.testing.assert_allclose(divisor, weight + least, rtol=2e-7)


def labels_of(kind, rng):
    """Logits and labels."""
    if kind == REGRESSION:
        return logits_of(rng, B, 1), rng.normal(0, 3, B).astype("f4")
    if kind == CLASSES:
        return logits_of(rng, B, C), rng.integers(0, C, B, np.int32)
    width = rng.choice([1, C])
    return logits_of(rng, B, width), rng.integers(0, 2, (B, width), np.int32)


@pytest.mark.parametrize("kind", KINDS)
@hypothesis.given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2]))
@hypothesis.settings(max_examples=20)
def test_sums_of_labels_equal_numpy(kind, seed, smoothing):
    """With weights and smoothing; filling examples do not count."""
    rng = np.random.default_rng(seed)
    logits, labels = labels_of(kind, rng)
    real, classes = zeros_and_ones(rng, B), logits.shape[-1]
    weights = rng.uniform(0.5, 3, classes)
    plain = scores.losses(logits, labels, kind)
    if kind == REGRESSION:
        more, loss, hits = (), plain, None
        assert loss == pytest.approx((logits[:, 0] - labels) ** 2)
    elif kind == CLASSES:
        log_p = log_softmax(logits.astype("f8"))
        target = np.eye(C)[labels] * (1 - smoothing) + smoothing / C
        loss = -(target * log_p).sum(-1) * weights[labels]
        hits = logits.argmax(-1) == labels
        more = tuple(weights), smoothing
    else:
        target = labels * (1 - smoothing) + smoothing / 2
        yes, no = special.log_expit(logits), special.log_expit(-logits)
        loss = -(target * weights * yes + (1 - target) * no).mean(-1)
        hits = ((logits >= 0) == labels).all(-1)
        more = tuple(weights), smoothing
    given = labels[:, 0] if labels.shape == (B, 1) else labels
    batch = {"label_ids": tf.constant(given), "is_real_example": real}
    outputs = {"logits": tf.constant(logits)}

    found = loss_of(kind, *more).sums(batch, outputs)
    expected = {"loss": loss @ real, "weight": real.sum()}
    if hits is not None:
        expected["accuracy"] = hits @ real
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, err_msg=name)
    assert loss_of(kind).weight(batch) == real.sum()

    # Without options it is the loss of an evaluation.
    found = loss_of(kind).sums(batch, outputs)["loss"]
    np.testing.assert_allclose(found, plain @ real, rtol=1e-5)

    # With `compile` it is the mean over a batch.
    found = loss_of(kind, *more)(batch["label_ids"], outputs["logits"])
    np.testing.assert_allclose(found, loss.mean(), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_finite_at_any_logit(kind):
    logits, labels = labels_of(kind, np.random.default_rng(13))
    logits = tf.constant(1e4 * np.where(logits > 0, 1, -1).astype("f4"))
    batch = {"label_ids": tf.constant(labels), "is_real_example": np.ones(B)}
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = loss_of(kind).sums(batch, {"logits": logits})["loss"]
    gradient = tape.gradient(loss, logits).numpy()
    assert np.isfinite(gradient).all() and np.abs(gradient).sum() > 0


def teacher_loss(kind, teacher, logits, temperature):
    """Loss of each example; its gradient, float64 [B, C]."""
    if kind == REGRESSION:
        return ((teacher - logits) ** 2)[:, 0], 2 * (logits - teacher)
    teacher, logits = (x.astype("f8") / temperature for x in (teacher, logits))
    if kind == CLASSES:
        p, q = special.softmax(teacher, -1), special.softmax(logits, -1)
        loss = (p * np.log(p / q)).sum(-1)
        return temperature**2 * loss, temperature * (q - p)
    p, q = special.expit(teacher), special.expit(logits)
    loss = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    gradient = temperature * (q - p) / logits.shape[1]
    return temperature**2 * loss.mean(-1), gradient


@pytest.mark.parametrize("kind", KINDS)
def test_a_teacher_has_its_part_of_the_loss(kind):
    rng = np.random.default_rng(13)
    logits, labels = labels_of(kind, rng)
    teacher = rng.normal(0, 2, logits.shape).astype("f4")
    shares = np.array([0.25, 1, 1, 0, 0.5], np.float32)
    real = np.array([1, 1, 1, 1, 0], np.int32)
    flat = teacher[:, 0] if kind == REGRESSION else teacher
    batch = {
        "label_ids": tf.constant(labels),
        "is_real_example": real,
        "teacher_outputs": tf.constant(flat),
        "teacher_weights": tf.constant(shares),
    }
    variable = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(variable)
        soft = task_losses.TeacherLoss(
            logits.shape[1], kind == MULTI_LABEL, 3.0
        )
        found = task_losses.Distilled(loss_of(kind), soft).sums(
            batch, {"logits": variable}
        )
        loss = found["loss"]
    each, gradient = teacher_loss(kind, teacher, logits, 3.0)
    of_labels = scores.losses(logits, labels, kind)
    expected = ((1 - shares) * of_labels + shares * each) * real
    np.testing.assert_allclose(loss, expected.sum(), rtol=1e-6)

    # Rows with only a teacher have only its gradient.
    only = (shares == 1) & (real == 1)
    np.testing.assert_allclose(
        tape.gradient(loss, variable)[only], gradient[only], atol=1e-6
    )
    without = loss_of(kind).sums(batch, {"logits": variable})
    assert found.keys() == without.keys()
    for name in found.keys() - {"loss"}:
        assert found[name] == without[name]
