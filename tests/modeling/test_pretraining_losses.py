"""Losses against numpy."""

import numpy as np
import pytest
import tensorflow as tf

from bert.modeling import losses
from tests.helpers import small
from tests.helpers.numpy_bert import log_softmax
from tests.helpers.small import P, V

ROWS = 5


@pytest.fixture
def batch():
    batch = small.batch(rows=ROWS)
    # The last example only fills the batch.
    batch["is_real_example"][-1] = 0
    batch["masked_lm_weights"][-1] = 0
    return {name: tf.constant(values) for name, values in batch.items()}


@pytest.fixture
def outputs():
    rng = np.random.default_rng(11)
    outputs = {
        "masked_lm_logits": rng.normal(0, 3, (ROWS, P, V)).astype("f4"),
        "next_sentence_logits": rng.normal(0, 3, (ROWS, 2)).astype("f4"),
    }
    outputs["next_sentence_logits"][0] = 1.0  # the first counts
    return outputs


def test_sums_equal_numpy(batch, outputs):
    sums = losses.pretraining_sums(batch, outputs)
    b = {name: values.numpy() for name, values in batch.items()}
    log_p = log_softmax(outputs["masked_lm_logits"].astype("f8"))
    nll, hits, n = 0.0, 0, 0
    for row in range(ROWS):
        for i in range(P):
            if b["masked_lm_weights"][row, i]:
                label = b["masked_lm_ids"][row, i]
                nll -= log_p[row, i, label]
                hits += log_p[row, i].argmax() == label
                n += 1
    assert float(sums["masked_lm_loss"]) == pytest.approx(nll, rel=1e-5)
    assert float(sums["masked_lm_accuracy"]) == hits
    assert float(sums["masked_lm_weight"]) == n
    log_q = log_softmax(outputs["next_sentence_logits"].astype("f8"))[:-1]
    labels = b["next_sentence_labels"][:-1, 0]
    expected = -log_q[np.arange(ROWS - 1), labels].sum()
    right = (log_q.argmax(-1) == labels).sum()
    assert float(sums["next_sentence_loss"]) == pytest.approx(expected, 1e-6)
    assert float(sums["next_sentence_accuracy"]) == right
    assert float(sums["next_sentence_weight"]) == ROWS - 1


def test_weights_are_the_divisors_of_the_losses(batch):
    weights = losses.pretraining_weights(batch)
    masked = batch["masked_lm_weights"].numpy().sum()
    assert float(weights["masked_lm"]) == pytest.approx(masked + 1e-5)
    assert float(weights["next_sentence"]) == ROWS - 1
