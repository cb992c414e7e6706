"""Models of each task against numpy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert.data import feature_names
from bert.data.pooling import pool
from bert.modeling import checkpoints, dropout, networks, precision
from bert.modeling.encoder import build_encoder
from bert.modeling.task_heads import (
    CHOICES,
    CLASSIFIER,
    NEXT_SENTENCE,
    SPANS,
    TOKENS,
)
from tests.helpers import model_files, numpy_bert, small
from tests.helpers.small import A, B, L, S

HEADS = {  # head -> scope in a checkpoint, C, reads the pooled output, dropout
    CLASSIFIER: ("", 5, True, [0.1]),
    NEXT_SENTENCE: ("cls/seq_relationship/", 2, True, []),
    SPANS: ("cls/squad/", 2, False, []),
    TOKENS: ("cls/ner/", 5, False, [0.1]),
    CHOICES: ("cls/swag/", 1, True, [0.1]),
}


def inputs_of(model, rows=B):
    """A batch; of three choices for each example where a model has them."""
    batch = small.batch(rows=rows)
    shape = (-1, 3, S) if len(model.input["input_ids"].shape) == 3 else (-1, S)
    return {name: batch[name].reshape(shape) for name in model.input}


@pytest.mark.parametrize("head", HEADS)
def test_outputs_of_every_head_equal_numpy(head):
    scope, count, is_pooled, _ = HEADS[head]
    model = networks.build(small.config(), head, count)
    weights = model_files.random_values(model, 0.3)
    checkpoints.assign(checkpoints.model_variables(model), weights, "")
    assert len(weights) == len(model.variables)
    weights = {name: x.astype("f8") for name, x in weights.items()}
    layers, pooled = numpy_bert.encode(weights, small.batch(rows=3 * B), L, A)
    x = pooled if is_pooled else layers[-1]
    logits = x @ weights[f"{scope}output_weights"].T
    assert (f"{scope}output_bias" in weights) == (head != CHOICES)
    logits = logits + weights.get(f"{scope}output_bias", 0.0)

    found = model(inputs_of(model, 3 * B))
    expected = {
        SPANS: {"start_logits": logits[..., 0], "end_logits": logits[..., -1]},
        NEXT_SENTENCE: {"next_sentence_logits": logits},
        CHOICES: {"logits": logits[..., 0].reshape(-1, 3)},
    }.get(head, {"logits": logits})
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5)


@pytest.mark.parametrize("head", HEADS)
def test_a_tenth_of_the_inputs_of_a_head_is_dropped_as_in_the_original(head):
    """Fixed in the original, independent of the config."""
    _, count, _, rates = HEADS[head]
    model = networks.build(small.config(), head, count)
    kind = dropout.Dropout
    assert [x.rate for x in model.layers if isinstance(x, kind)] == rates
    found = []
    for seed in (2, 3):
        with dropout.dropout_seed((1, seed)):
            outputs = model(inputs_of(model, 3 * B), training=True)
        found.append(np.array([*outputs.values()]))
    assert (found[0] != found[1]).any() == bool(rates)


@pytest.mark.parametrize("head", [CLASSIFIER, CHOICES])
def test_scores_keep_their_bits_in_half_precision(head):
    """Close ones are not rounded to ties."""
    with precision.computing_in("bfloat16"):
        model = networks.build(small.config(), head, HEADS[head][1])
    layer = model.get_layer(head)
    both = keras.Model(model.input, [layer.input, model.output["logits"]])
    x, found = both(inputs_of(model, 3 * B))
    weights = layer.output_weights.value
    expected = tf.cast(x, tf.float32) @ tf.transpose(weights)
    expected = tf.reshape(expected, found.shape)
    assert (x.dtype, found.dtype) == (tf.bfloat16, tf.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    rounded = tf.cast(tf.cast(found, tf.bfloat16), tf.float32)
    assert (rounded.numpy() != found.numpy()).any()


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_a_text_has_its_embedding_in_any_company(pooling):
    """The embedding of its tokens alone, whatever the batch and the padding."""
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


@pytest.mark.parametrize("trainable", [True, False])
def test_a_pooler_that_no_head_reads_is_frozen(trainable):
    """Also by a second head; the user may have frozen it before."""
    encoder = build_encoder(small.config())
    pooler = encoder.get_layer("pooler")
    pooler.trainable = trainable
    for head in (TOKENS, SPANS):
        networks.build(small.config(), head, 2, encoder=encoder)
        assert (pooler.trainable, pooler.is_unread) == (False, trainable)


def test_several_labels_are_compared_as_logits():
    loss, (accuracy,) = networks.default_loss(2, is_multi_label=True)
    labels, logits = np.array([[[1.0, 0.0]], [[0.3, -0.3]]])
    assert float(accuracy(labels, logits)) == 1.0
    assert float(loss(labels, logits)) == pytest.approx(np.log1p(np.exp(-0.3)))
