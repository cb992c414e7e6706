"""Names and shapes of Model Garden's checkpoints."""

import numpy as np
import pytest
import tensorflow as tf

from bert.common.formats import tensor_files
from bert.modeling import networks, task_heads
from bert.modeling.formats import model_garden
from tests.helpers import garden_files, model_files, small
from tests.helpers.garden_files import node
from tests.helpers.small import A, H


def assert_read(prefix, values):
    found, skipped = model_garden.read(prefix)
    assert skipped == []
    assert set(found) == set(values)
    for name, value in found.items():
        assert value.tobytes() == values[name].tobytes(), name


@pytest.mark.parametrize(
    "build",
    [
        networks.build_pretraining_model,
        lambda config: networks.build(config, task_heads.CLASSIFIER, 5),
        lambda config: networks.build(config, task_heads.SPANS, 2),
        lambda config: networks.build(config, task_heads.TOKENS, 5),
    ],
)
def test_every_variable_is_read(tmp_path, build):
    values = model_files.values_with_layer_10(build(small.config()))
    prefix = garden_files.write(tmp_path, small.config(), values)
    assert_read(prefix, values)


def test_a_hub_module_of_the_first_format_holds_names_below_module(
    tmp_path,
):
    model = networks.build_pretraining_model(small.config())
    values = model_files.values_with_layer_10(model)
    prefix = str(tmp_path / "variables")
    named = {f"module/{name}": value for name, value in values.items()}
    tensor_files.write(prefix, named)
    assert_read(prefix, values)


def variable(name, value, *shape):
    return tf.Variable(tf.fill(shape or [H, H], value), name=name)


def newer_encoder():
    """`BertEncoderV2` has other edges to variables of the same names."""
    name = "transformer/layer_1/self_attention/query/kernel"
    query = variable(name, tf.constant(1.0, tf.float16), H, A, H // A)
    attention = node(_query_dense=node(kernel=query))
    blocks = node(**{"1": node(_attention_layer=attention)})
    return node(encoder=node(_transformer_layers=blocks))


def head_with_a_pooler():
    """Their pre-training does not train the encoder's own pooler."""
    name = "bert/next_sentence/pooler_dense/kernel"
    return node(
        encoder=node(kernel=variable("pooler_transform/kernel", 0.0)),
        head=node(kernel=variable(name, 1.0)),
    )


def optimizer_with_slots():
    """Their trainer saves slots below the variables that they belong to."""
    kernel = variable("predictions/transform/logits/kernel", 1.0, H, 5)
    optimizer = tf.compat.v1.train.AdamOptimizer(0.1)
    optimizer.apply_gradients([(0 * kernel, kernel)])
    return node(model=node(head=node(kernel=kernel)), optimizer=optimizer)


def optimizers_inside():
    """Since Keras 2.11 a compiled model has its optimizer below it."""
    name = "word_embeddings/embeddings"
    inside = {
        key: node(
            _iterations=tf.Variable(1),
            _variables=node(m=variable(f"Adam/m/{name}", 0.0)),
        )
        for key in ("aa", "optimizer", "zz")  # before and after the weights
    }
    table = node(embeddings=variable(name, 1.0))
    return node(model=node(table=table, **inside))


def unknown_head():
    head = node(kernel=variable("my_head/kernel", 1.0))
    moment = variable("Adam/m/word_embeddings/embeddings", 0.0)
    return node(optimizer=node(m=moment), head=head)


@pytest.mark.parametrize(
    ("make", "name", "unknown"),
    [
        (newer_encoder, "bert/encoder/layer_1/attention/self/query/kernel", []),
        (head_with_a_pooler, "bert/pooler/dense/kernel", []),
        (optimizer_with_slots, "cls/ner/output_weights", []),
        (optimizers_inside, "bert/embeddings/word_embeddings", []),
        (unknown_head, None, ["my_head/kernel"]),
    ],
)
def test_only_trained_weights_are_read(tmp_path, make, name, unknown):
    """They are ones; moments and untrained variables are zeros."""
    path = make().save(str(tmp_path / "ckpt"))
    values, skipped = model_garden.read(path)
    assert (list(values), skipped) == ([name] if name else [], unknown)
    for value in values.values():
        assert (value == 1).all() and value.dtype == np.float32
