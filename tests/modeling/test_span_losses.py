"""The loss of question answering against numpy."""

import numpy as np
import pytest
import tensorflow as tf

from bert.modeling import task_losses
from tests.helpers.numpy_bert import log_softmax

B, S = 3, 7


def example(padding):
    rng = np.random.default_rng(5)
    logits = rng.normal(0, 3, (2, B, S)).astype("f4")
    mask = np.ones((B, S), np.int32)
    mask[1, 5:] = 0
    batch = {
        "start_positions": np.array([0, 2, 6], np.int32),
        "end_positions": np.array([0, 4, 6], np.int32),
        "input_mask": np.pad(mask, [(0, 0), (0, padding)]),
    }
    # Padding has the highest logits.
    logits = np.pad(
        logits, [(0, 0), (0, 0), (0, padding)], constant_values=50.0
    )
    outputs = {"start_logits": logits[0], "end_logits": logits[1]}
    batch = {name: tf.constant(x) for name, x in batch.items()}
    return batch, {name: tf.constant(x) for name, x in outputs.items()}


@pytest.mark.parametrize("padding", [0, 4])
def test_sums_equal_numpy_with_any_padding(padding):
    batch, outputs = example(padding)
    sums = task_losses.span_sums(batch, outputs)
    loss, hits = 0.0, 0
    for row, length in enumerate([7, 5, 7]):
        right = []
        for side in ("start", "end"):
            logits = outputs[f"{side}_logits"].numpy()[row, :length]
            label = batch[f"{side}_positions"].numpy()[row]
            loss -= log_softmax(logits.astype("f8"))[label] / 2
            right.append(logits.argmax() == label)
        hits += all(right)
    assert float(sums["span_loss"]) == pytest.approx(loss, rel=1e-5)
    assert float(sums["span_accuracy"]) == hits
    assert float(sums["span_weight"]) == B
    assert float(task_losses.span_weights(batch)["span"]) == B


def test_a_hit_is_start_and_end():
    batch, outputs = example(0)
    for side in ("start", "end"):
        label = batch[f"{side}_positions"]
        outputs[f"{side}_logits"] = 9.0 * tf.one_hot(label, S)
    assert float(task_losses.span_sums(batch, outputs)["span_accuracy"]) == B
    outputs["end_logits"] = 9.0 * tf.one_hot([1, 4, 6], S)
    assert (
        float(task_losses.span_sums(batch, outputs)["span_accuracy"]) == B - 1
    )
