"""Models of each task against numpy, and losses of tokens and choices."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert.data import feature_names
from bert.data.pooling import pool
from bert.modeling import (
    checkpoints,
    dropout,
    networks,
    task_heads,
    task_losses,
)
from tests.helpers import numpy_bert, small
from tests.helpers.numpy_bert import log_softmax
from tests.helpers.small import A, B, H, L, S

C = 5
CHOICES = 3
PRETRAINING = {
    "cls/predictions/transform/dense/kernel": (H, H),
    "cls/predictions/transform/dense/bias": (H,),
    "cls/predictions/transform/LayerNorm/gamma": (H,),
    "cls/predictions/transform/LayerNorm/beta": (H,),
    "cls/predictions/output_bias": (small.V,),
    "cls/seq_relationship/output_weights": (2, H),
    "cls/seq_relationship/output_bias": (2,),
}


def randomized(model, batch):
    """Weights by their names in checkpoints, and numpy's encoder."""
    rng = np.random.default_rng(3)
    for variable in model.variables:
        variable.assign(rng.normal(0.1, 0.3, variable.shape))
    named = checkpoints.model_variables(model)
    assert len(named) == len(model.variables)
    weights = {name: variable.numpy() for name, variable in named.items()}
    unused = {name: np.zeros(shape) for name, shape in PRETRAINING.items()}
    return weights, numpy_bert.forward({**unused, **weights}, batch, L, A)


def inputs_of(model, batch):
    return {name: batch[name] for name in model.input}


def test_the_classifier_reads_the_pooled_vector():
    model = networks.build(small.config(), task_heads.CLASSIFIER, C)
    weights, expected = randomized(model, small.batch())
    logits = expected["pooled_output"] @ weights["output_weights"].T
    outputs = model(inputs_of(model, small.batch()))
    assert list(outputs) == ["logits"]
    np.testing.assert_allclose(
        outputs["logits"], logits + weights["output_bias"], atol=1e-5
    )


def test_the_span_model_scores_every_token():
    model = networks.build(small.config(), task_heads.SPANS, 2)
    weights, expected = randomized(model, small.batch())
    logits = expected["encoder_outputs"][-1] @ (
        weights["cls/squad/output_weights"].T
    )
    logits = logits + weights["cls/squad/output_bias"]  # [B, S, 2]
    outputs = model(inputs_of(model, small.batch()))
    assert logits.shape == (B, S, 2)
    for index, name in enumerate(("start_logits", "end_logits")):
        np.testing.assert_allclose(outputs[name], logits[..., index], atol=1e-5)


def test_the_classifier_drops_a_tenth_of_the_pooled_vector():
    """Fixed in the original, independent of the config."""
    model = networks.build(small.config(), task_heads.CLASSIFIER, C)
    weights, expected = randomized(model, small.batch())
    inputs = inputs_of(model, small.batch())
    plain = np.array(model(inputs)["logits"])
    with dropout.dropout_seed((1, 2)):
        first = np.array(model(inputs, training=True)["logits"])
    with dropout.dropout_seed((1, 3)):
        second = np.array(model(inputs, training=True)["logits"])
    assert (plain != first).any() and (first != second).any()
    assert model.get_layer("dropout").rate == 0.1


def test_every_token_gets_a_score_for_each_label():
    model = networks.build(small.config(), task_heads.TOKENS, C)
    batch = small.batch()
    weights, expected = randomized(model, batch)
    logits = expected["encoder_outputs"][-1] @ (
        weights["cls/ner/output_weights"].T
    )
    outputs = model(inputs_of(model, batch))
    assert list(outputs) == ["logits"]
    assert outputs["logits"].shape == (B, S, C)
    np.testing.assert_allclose(
        outputs["logits"], logits + weights["cls/ner/output_bias"], atol=1e-5
    )


def test_every_choice_gets_a_score_from_its_own_row():
    model = networks.build(small.config(), task_heads.CHOICES, 1)
    batch = small.batch(rows=B * CHOICES)
    weights, expected = randomized(model, batch)
    assert weights["cls/swag/output_weights"].shape == (1, H)
    assert "cls/swag/output_bias" not in weights
    scores = expected["pooled_output"] @ weights["cls/swag/output_weights"][0]
    inputs = {name: batch[name].reshape(B, CHOICES, S) for name in model.input}
    outputs = model(inputs)
    assert list(outputs) == ["logits"]
    np.testing.assert_allclose(
        outputs["logits"], scores.reshape(B, CHOICES), atol=1e-5
    )


def test_scores_keep_their_bits_in_half_precision():
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = networks.build(small.config(), task_heads.CHOICES, 1)
    finally:
        keras.config.set_dtype_policy(before)
    batch = small.batch(rows=B * CHOICES)
    inputs = {name: batch[name].reshape(B, CHOICES, S) for name in model.input}
    unfold = model.get_layer("unfold")
    scores = np.array([[1.0009], [2.0], [3.0], [4.0], [5.0], [6.0]], "f4")
    found = unfold(scores, inputs["input_ids"])
    np.testing.assert_array_equal(found, scores.reshape(B, CHOICES))
    assert str(model(inputs)["logits"].dtype).endswith("float32'>")


def test_tokens_without_a_label_have_no_loss():
    rng = np.random.default_rng(11)
    logits = rng.normal(0, 3, (B, S, C)).astype("f4")
    labels = rng.integers(0, C, (B, S), np.int32)
    weights = rng.integers(0, 2, (B, S)).astype("f4")
    batch = {"label_ids": labels, "label_weights": weights}
    sums = task_losses.token_sums(batch, {"logits": logits})
    log_p = log_softmax(logits.astype("f8"))
    labeled = [(b, s) for b in range(B) for s in range(S) if weights[b, s]]
    expected = -sum(log_p[b, s, labels[b, s]] for b, s in labeled)
    right = sum(log_p[b, s].argmax() == labels[b, s] for b, s in labeled)
    assert set(sums) == {"token_loss", "token_accuracy", "token_weight"}
    assert float(sums["token_loss"]) == pytest.approx(expected, rel=1e-5)
    assert float(sums["token_accuracy"]) == right
    assert float(sums["token_weight"]) == len(labeled)
    assert float(task_losses.token_weights(batch)["token"]) == len(labeled)


def test_choices_that_are_not_there_share_no_probability():
    rng = np.random.default_rng(13)
    logits = rng.normal(0, 3, (B, CHOICES)).astype("f4")
    logits[1, 2] = 50.0
    batch = {
        "label_ids": np.array([2, 1], np.int32),
        "choice_weights": np.array([[1, 1, 1], [1, 1, 0]], np.float32),
    }
    sums = task_losses.choice_sums(batch, {"logits": logits})
    first, second = log_softmax(logits[:1]), log_softmax(logits[1:, :2])
    expected = -first[0, 2] - second[0, 1]
    right = (first[0].argmax() == 2) + (second[0].argmax() == 1)
    assert float(sums["choice_loss"]) == pytest.approx(expected, rel=1e-5)
    assert float(sums["choice_accuracy"]) == right
    assert float(sums["choice_weight"]) == B
    assert float(task_losses.choice_weights(batch)["choice"]) == B


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_a_text_has_its_vector_in_any_company(pooling):
    """That of its tokens alone, whatever the batch and the padding."""
    model = networks.build_similarity_model(small.config(), pooling)
    rows = small.rows_of([3, 11, 5, 7, 2, 11], small.S)
    inputs = {name: tf.reshape(x, (2, 3, -1)) for name, x in rows.items()}
    vectors = model(inputs)["vectors"].numpy()
    assert vectors.shape == (2, 3, small.H)

    encoder = model.get_layer("bert")
    for i, length in enumerate([3, 11, 5, 7, 2, 11]):
        alone = {name: x[i : i + 1, :length] for name, x in rows.items()}
        tokens = encoder(alone)["sequence_output"].numpy()
        mask = alone[feature_names.INPUT_MASK].numpy()
        np.testing.assert_allclose(
            vectors[i // 3, i % 3], pool(tokens, mask, pooling)[0], atol=1e-5
        )
