"""Names and shapes of Model Garden's checkpoints."""

import numpy as np
import pytest
import tensorflow as tf

from bert.common.formats import tensor_files
from bert.modeling import checkpoints, networks, task_heads
from bert.modeling.formats import model_garden
from tests.helpers import garden_files, small
from tests.helpers.garden_files import node
from tests.helpers.small import A, H


def random_values(model, seed=5):
    rng = np.random.default_rng(seed)
    return {
        name.replace("layer_1/", f"layer_{number}/"): rng.normal(
            0, 1, v.shape
        ).astype(np.float32)
        for number in (1, 10)
        for name, v in checkpoints.model_variables(model).items()
    }


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
    values = random_values(build(small.config()))
    found, skipped = model_garden.read(
        garden_files.write(tmp_path, small.config(), values)
    )
    assert skipped == []
    assert set(found) == set(values)
    for name, value in found.items():
        assert value.tobytes() == values[name].tobytes(), name


def test_the_newer_encoder_is_read(tmp_path):
    """`BertEncoderV2` has other edges to variables of the same names."""
    query = np.arange(H * H, dtype="f4").reshape(H, A, H // A)
    name = "transformer/layer_1/self_attention/query/kernel"
    attention = node(_query_dense=node(kernel=tf.Variable(query, name=name)))
    blocks = node(**{"1": node(_attention_layer=attention)})
    root = node(encoder=node(_transformer_layers=blocks))
    values, _ = model_garden.read(root.save(str(tmp_path / "ckpt")))
    name = "bert/encoder/layer_1/attention/self/query/kernel"
    np.testing.assert_array_equal(values[name], query.reshape(H, H))


def test_the_pooler_of_a_head_is_the_trained_one(tmp_path):
    """Their pre-training does not train the encoder's own pooler."""
    named = {
        "encoder": ("pooler_transform/kernel", np.zeros([H, H], "f4")),
        "head": ("bert/next_sentence/pooler_dense/kernel", np.ones([H, H])),
    }
    children = {
        key: node(kernel=tf.Variable(value, name=name))
        for key, (name, value) in named.items()
    }
    path = node(**children).save(str(tmp_path / "ckpt"))
    values, _ = model_garden.read(path)
    assert (values["bert/pooler/dense/kernel"] == 1).all()


def test_the_head_is_not_a_moment_of_its_optimizer(tmp_path):
    """Their trainer saves slots below the variables that they belong to."""
    name = "predictions/transform/logits/kernel"
    kernel = tf.Variable(tf.ones([H, 5]), name=name)
    optimizer = tf.compat.v1.train.AdamOptimizer(0.1)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(kernel * 7.0)
    optimizer.apply_gradients([(tape.gradient(loss, kernel), kernel)])
    head = node(kernel=kernel)
    root = node(model=node(head=head), optimizer=optimizer)
    path = root.save(str(tmp_path / "ckpt"))
    keys = [key for key, _ in tf.train.list_variables(path)]
    assert any("/.OPTIMIZER_SLOT/" in key for key in keys)
    values, skipped = model_garden.read(path)
    assert skipped == []
    np.testing.assert_array_equal(
        values["cls/ner/output_weights"], kernel.numpy().T
    )


def test_weights_are_not_moments_of_an_optimizer_inside(tmp_path):
    """Since Keras 2.11 a compiled model has its optimizer below it."""
    name = "word_embeddings/embeddings"
    moment = tf.Variable(tf.zeros([5, H]), name=f"Adam/m/{name}")
    weight = tf.Variable(tf.ones([5, H]), name=name)
    for key in ("aa", "optimizer", "zz"):  # before and after the weights
        inside = node(_iterations=tf.Variable(1), _variables=node(m=moment))
        model = node(table=node(embeddings=weight), **{key: inside})
        path = node(model=model).save(str(tmp_path / key / "ckpt"))
        values, skipped = model_garden.read(path)
        assert skipped == []
        assert (values["bert/embeddings/word_embeddings"] == 1).all()


def test_unknown_variables_are_listed_and_optimizers_are_not(tmp_path):
    slot = tf.Variable(1.0, name="Adam/m/word_embeddings/embeddings")
    other = tf.Variable(1.0, name="my_head/kernel")
    root = node(optimizer=node(m=slot), head=node(kernel=other))
    path = root.save(str(tmp_path / "ckpt"))
    assert model_garden.read(path) == ({}, ["my_head/kernel"])


def test_a_hub_module_of_the_first_format_holds_names_below_module(
    tmp_path,
):
    values = random_values(networks.build_pretraining_model(small.config()))
    prefix = str(tmp_path / "variables")
    named = {f"module/{name}": value for name, value in values.items()}
    tensor_files.write(prefix, named)
    found, skipped = model_garden.read(prefix)
    assert skipped == []
    assert set(found) == set(values)
    for name, value in found.items():
        np.testing.assert_array_equal(value, values[name], name)
