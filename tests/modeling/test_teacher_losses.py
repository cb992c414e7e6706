"""Loss of a student beside its teacher, against NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

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


def soft(kind, teacher, logits, temperature):
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
    return temperature**2 * loss.mean(-1), temperature * (q - p) / C


@pytest.mark.parametrize("kind", SUMS)
def test_a_teacher_has_its_part_of_the_loss(kind):
    logits, labels = case(kind)
    teacher = np.random.default_rng(5).normal(0, 2, logits.shape).astype("f4")
    shares = np.array([0.25, 1, 0, 0.5, 1, 0.5, 0], np.float32)
    real = np.array([1, 1, 1, 1, 1, 0, 0], np.int32)
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
        found = task_losses.distilled_sums(
            batch,
            {"logits": variable},
            SUMS[kind],
            task_losses.teacher_loss(logits.shape[1], kind == MULTI_LABEL, 3.0),
        )
        loss = found["labels_loss"]
    each, gradient = soft(kind, teacher, logits, 3.0)
    of_labels = scores.losses(logits, labels, kind)
    expected = ((1 - shares) * of_labels + shares * each) * real
    np.testing.assert_allclose(loss, expected.sum(), rtol=1e-6)

    # Rows with only a teacher have only its gradient.
    only = (shares == 1) & (real == 1)
    np.testing.assert_allclose(
        tape.gradient(loss, variable)[only], gradient[only], atol=1e-6
    )
    without = SUMS[kind](batch, {"logits": variable})
    assert found.keys() == without.keys()
    for name in found.keys() - {"labels_loss"}:
        assert found[name] == without[name]
