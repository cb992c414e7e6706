"""Losses of labels against the metrics of evaluation."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from bert.data import postprocessing
from bert.data.labels import CLASSES, MULTI_LABEL, REGRESSION
from bert.modeling import task_losses
from bert.tasks.classification import scores

B, C = 7, 3
SUMS = {
    CLASSES: task_losses.class_sums,
    MULTI_LABEL: task_losses.multi_label_sums,
    REGRESSION: task_losses.number_sums,
}


def case(kind):
    rng = np.random.default_rng(13)
    width = 1 if kind == REGRESSION else C
    logits = rng.normal(0, 3, (B, width)).astype("f4")
    labels = {
        CLASSES: rng.integers(0, C, B).astype("i4"),
        MULTI_LABEL: rng.integers(0, 2, (B, C)).astype("i4"),
        REGRESSION: (logits[:, 0] + rng.uniform(-1, 1, B)).astype("f4"),
    }[kind]
    return logits, labels


@pytest.mark.parametrize("kind", SUMS)
def test_sums_equal_the_metrics_and_skip_filling_examples(kind):
    logits, labels = case(kind)
    real = np.array([1, 1, 1, 1, 1, 0, 0], np.int32)
    batch = {"label_ids": tf.constant(labels), "is_real_example": real}
    sums = SUMS[kind](batch, {"logits": tf.constant(logits)})
    expected = scores.losses(logits, labels, kind)[:5].sum()
    np.testing.assert_allclose(sums["labels_loss"], expected, rtol=1e-5)
    assert sums["labels_weight"] == 5
    assert task_losses.label_weights(batch) == {"labels": 5.0}
    answers = postprocessing.predictions(logits, kind)[:5]
    if kind == REGRESSION:
        assert sums.keys() == {"labels_loss", "labels_weight"}
        return
    hits = {
        CLASSES: (answers == labels[:5]),
        MULTI_LABEL: (answers == labels[:5]).all(-1),
    }[kind]
    assert 0 < hits.sum() < 5 or kind == MULTI_LABEL
    assert sums["labels_accuracy"] == hits.sum()


def test_one_label_that_may_be_missing_has_its_own_loss():
    logits, labels = (x[:, :1] for x in case(MULTI_LABEL))
    batch = {"label_ids": labels[:, 0], "is_real_example": np.ones(B)}
    sums = task_losses.multi_label_sums(batch, {"logits": logits})
    expected = scores.losses(logits, labels, MULTI_LABEL).sum()
    np.testing.assert_allclose(sums["labels_loss"], expected, rtol=1e-5)
    hits = postprocessing.predictions(logits, MULTI_LABEL) == labels
    assert sums["labels_accuracy"] == hits.sum()


@pytest.mark.parametrize("kind", SUMS)
def test_gradients_are_finite_at_any_logit(kind):
    width = 1 if kind == REGRESSION else C
    logits = tf.constant([[1e4] * width, [-1e4] * width])
    labels = case(kind)[1][:2]
    batch = {"label_ids": tf.constant(labels), "is_real_example": [1.0, 1.0]}
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = SUMS[kind](batch, {"logits": logits})["labels_loss"]
    gradient = tape.gradient(loss, logits).numpy()
    assert np.isfinite(gradient).all() and np.abs(gradient).sum() > 0


WEIGHTS = (0.5, 2.0, 3.0)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("kind", [CLASSES, MULTI_LABEL])
def test_weights_and_smoothing_equal_those_of_numpy(kind, smoothing):
    logits, labels = case(kind)
    batch = {"label_ids": labels, "is_real_example": np.ones(B)}
    sums = SUMS[kind](batch, {"logits": logits}, WEIGHTS, smoothing)
    logs, others = special.log_softmax(logits, -1), 0.0
    target = np.eye(C)[labels] if kind == CLASSES else labels
    weights = np.array(WEIGHTS)[labels] if kind == CLASSES else 1.0
    if kind == MULTI_LABEL:
        logs, others = special.log_expit(logits), special.log_expit(-logits)
    of_each = target * (1 - smoothing) + smoothing / (
        C if kind == CLASSES else 2
    )
    if kind == MULTI_LABEL:
        loss = of_each * WEIGHTS * logs + (1 - of_each) * others
        expected = -loss.mean(-1).sum()
    else:
        expected = -((of_each * logs).sum(-1) * weights).sum()
    np.testing.assert_allclose(sums["labels_loss"], expected, rtol=1e-5)
    assert sums["labels_weight"] == B
