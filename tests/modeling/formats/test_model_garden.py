"""Names and shapes of Model Garden's checkpoints."""

import numpy as np
import pytest
import tensorflow as tf

from bert.common import tensor_files
from bert.common.errors import UserError
from bert.modeling import checkpoints, models, task_models
from bert.modeling.formats import model_garden
from tests.helpers import small
from tests.helpers.small import INTERMEDIATE, POSITIONS, A, H, L, V

D = H // A
END = "/.ATTRIBUTES/VARIABLE_VALUE"


def published() -> dict[str, list[int]]:
    """Keys and shapes that `BertPretrainerV2` of 2.20 saves."""

    def dense(scope, *shape):
        return {
            f"{scope}/kernel": list(shape),
            f"{scope}/bias": [*shape[1:]],
        }

    def norm(scope):
        return {f"{scope}/gamma": [H], f"{scope}/beta": [H]}

    layer = "encoder/layer_with_weights-{}"
    keys = {
        "save_counter": [],
        layer.format(1) + "/embeddings": [POSITIONS, H],
        layer.format(2) + "/embeddings": [2, H],
        **norm(layer.format(3)),
        **dense(layer.format(4 + L), H, H),
        **dense("masked_lm/dense", H, H),
        **norm("masked_lm/layer_norm"),
        "masked_lm/embedding_table": [V, H],
        "masked_lm/output_bias.Sbias": [V],
        **dense("next_sentence..pooler_dense", H, H),
        **dense("model/classification_heads/0/out_proj", H, 2),
    }
    for index in range(L):
        scope = layer.format(4 + index)
        for name in ("query", "key", "value"):
            attention = f"{scope}/_attention_layer/_{name}_dense"
            keys |= dense(attention, H, A, D)
        attention = f"{scope}/_attention_layer/_output_dense"
        keys |= {f"{attention}/kernel": [A, D, H], f"{attention}/bias": [H]}
        keys |= norm(f"{scope}/_attention_layer_norm")
        keys |= dense(f"{scope}/_intermediate_dense", H, INTERMEDIATE)
        keys |= dense(f"{scope}/_output_dense", INTERMEDIATE, H)
        keys |= norm(f"{scope}/_output_layer_norm")
    return {key + END: shape for key, shape in keys.items()}


def random_values(model, seed=5):
    rng = np.random.default_rng(seed)
    return {
        name: rng.normal(0, 1, v.shape).astype(np.float32)
        for name, v in checkpoints.model_variables(model).items()
    }


@pytest.fixture(scope="module")
def values():
    return random_values(models.build_pretraining_model(small.config()))


def write(folder, values):
    prefix = str(folder / model_garden.PREFIX)
    return model_garden.write(prefix, small.config(), values)


def test_keys_and_shapes_are_those_of_model_garden(tmp_path, values):
    path = write(tmp_path, values)
    assert path == str(tmp_path / "bert_model.ckpt-1")
    found = dict(tf.train.list_variables(path))
    del found["_CHECKPOINTABLE_OBJECT_GRAPH"]
    assert found == published()


@pytest.mark.parametrize(
    "build",
    [
        models.build_pretraining_model,
        lambda config: task_models.build_classifier(config, 5),
        task_models.build_span_model,
        lambda config: task_models.build_token_classifier(config, 5),
    ],
)
def test_a_round_trip_keeps_every_bit(tmp_path, build):
    values = random_values(build(small.config()))
    found, skipped = model_garden.read(write(tmp_path, values))
    assert skipped == []
    assert set(found) == set(values)
    for name, value in found.items():
        assert value.tobytes() == values[name].tobytes(), name


def restored(path, **children):
    """Restores variables below a root, as models of Model Garden do."""
    root = tf.train.Checkpoint(**children)
    root.restore(path).assert_existing_objects_matched()


def node(**children):
    return tf.train.Checkpoint(**children)


def test_the_newer_encoder_is_read(tmp_path):
    """`BertEncoderV2` has other edges to variables of the same names."""
    query = np.arange(H * H, dtype="f4").reshape(H, A, D)
    name = "transformer/layer_1/self_attention/query/kernel"
    attention = node(_query_dense=node(kernel=tf.Variable(query, name=name)))
    blocks = node(**{"1": node(_attention_layer=attention)})
    root = node(encoder=node(_transformer_layers=blocks))
    values, _ = model_garden.read(root.save(str(tmp_path / "ckpt")))
    name = "bert/encoder/layer_1/attention/self/query/kernel"
    np.testing.assert_array_equal(values[name], query.reshape(H, H))


@pytest.mark.parametrize(
    ("build", "name", "inside"),
    [
        (task_models.build_classifier, "output_weights", True),
        (task_models.build_token_classifier, "cls/ner/output_weights", False),
    ],
)
def test_both_of_their_classifiers_restore_the_head(
    tmp_path, build, name, inside
):
    """Sentence classifiers project inside a layer, token classifiers not."""
    values = random_values(build(small.config(), 5))
    kernel = tf.Variable(tf.zeros([H, 5]))
    head = node(kernel=kernel)
    head = node(out_proj=head) if inside else head
    path = write(tmp_path, values)
    restored(path, model=node(**{"layer_with_weights-1": head}))
    np.testing.assert_array_equal(kernel.numpy().T, values[name])


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
    tmp_path, values
):
    prefix = str(tmp_path / "variables")
    named = {f"module/{name}": value for name, value in values.items()}
    tensor_files.write(prefix, named)
    found, skipped = model_garden.read(prefix)
    assert skipped == []
    assert set(found) == set(values)
    for name, value in found.items():
        np.testing.assert_array_equal(value, values[name], name)


def test_two_task_heads_are_rejected(tmp_path):
    config = small.config()
    values = random_values(task_models.build_classifier(config, 5))
    values |= random_values(task_models.build_span_model(config))
    with pytest.raises(UserError, match="hold one"):
        write(tmp_path, values)
    assert list(tmp_path.iterdir()) == []
