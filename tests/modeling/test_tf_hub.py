"""The Keras 3 layer around a SavedModel of TF-Hub."""

import pathlib
import shutil
import subprocess
import sys
from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert.common.errors import UserError
from bert.modeling import tf_hub
from tests.helpers import tf_hub_exports
from tests.helpers.small import B, L, P
from tests.helpers.tf_hub_exports import HEAD

ROOT = pathlib.Path(__file__).parents[2]
TRUST = {"trust_model": True}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    return tf_hub_exports.made(tmp_path_factory)


@pytest.fixture(scope="module")
def rows():
    """Inputs of an encoder."""
    batch = tf_hub_exports.rows()
    return {name: batch[name] for name in tf_hub_exports.ENCODER}


def classifier(path, **named):
    """A functional Keras 3 model."""
    inputs = {
        name: keras.Input((None,), dtype="int32", name=name)
        for name in tf_hub_exports.ENCODER
    }
    layer = tf_hub.HubEncoder(path, trust_model=True, name="bert", **named)
    x = layer(inputs)["pooled_output"]
    head = keras.layers.Dense(2, kernel_initializer="zeros", name="head")
    return keras.Model(inputs, head(x))


def test_weights_that_are_not_finite_are_refused(tmp_path):
    module = tf.train.Checkpoint()
    module.variables = [tf.Variable([1.0]), tf.Variable([7])]
    tf.saved_model.save(module, str(tmp_path))
    tf_hub.load(str(tmp_path), trust_model=True)
    module.variables[0].assign([np.nan])
    tf.saved_model.save(module, str(tmp_path))
    with pytest.raises(UserError, match="weights that are NaN or infinite"):
        tf_hub.load(str(tmp_path), trust_model=True)


@pytest.mark.parametrize(
    ("path", "named", "message"),
    [
        ("encoder", {}, "trust_model=True"),
        ("https://localhost/bert/1", TRUST, "cannot be loaded"),
        ("/nothing", TRUST, "cannot be loaded"),
        ("preprocessor", TRUST, "inputs input_word_ids, input_mask"),
        ("encoder", {"part": "classifier"} | TRUST, "no such object"),
    ],
)
def test_only_a_trusted_encoder_is_loaded(exports, path, named, message):
    """No address is fetched."""
    with pytest.raises(UserError, match=message):
        tf_hub.HubEncoder(getattr(exports, path, path), **named)


def test_outputs_of_the_layer_equal_those_of_the_checkpoint(exports):
    layer = tf_hub.HubEncoder(exports.encoder, trust_model=True)
    rows = tf_hub_exports.rows()
    expected = exports.expected(rows)
    for inputs in (rows, tf_hub_exports.theirs(rows)):
        found = layer(inputs)
        for name in ("pooled_output", "sequence_output"):
            np.testing.assert_allclose(found[name], expected[name], atol=1e-5)
        assert len(found["encoder_outputs"]) == L
    drawn = layer(rows, training=True)["pooled_output"]
    assert np.abs(drawn - expected["pooled_output"]).max() > 1e-3
    layer.trainable = False
    calm = layer(rows, training=True)["pooled_output"]
    np.testing.assert_allclose(calm, expected["pooled_output"], atol=1e-5)
    assert layer.trainable_variables == []


def test_losses_of_the_module_are_added_to_a_trainable_layer(exports):
    layer = tf_hub.HubEncoder(exports.encoder, trust_model=True)
    layer._network = mock.Mock(return_value={})
    layer._network.regularization_losses = [lambda: tf.constant(3.0)]
    layer(tf_hub_exports.rows())
    assert layer.losses == [3.0]
    layer.trainable = False
    layer(tf_hub_exports.rows())
    assert layer.losses == []


def test_the_masked_lm_part_has_the_heads_weights_too(exports):
    core = tf_hub.HubEncoder(exports.encoder, trust_model=True)
    layer = tf_hub.HubEncoder(exports.encoder, "mlm", trust_model=True)
    sizes = [len(x.trainable_variables) for x in (core, layer)]
    assert sizes == [sizes[0], sizes[0] + HEAD]
    rows = tf_hub_exports.rows()
    found = layer(rows)["mlm_logits"]
    assert found.shape == (B, P, tf_hub_exports.V)
    expected = exports.expected(rows)["mlm_logits"]
    np.testing.assert_allclose(found, expected, atol=1e-5)


ELSEWHERE = """
import sys
import keras, numpy as np
from bert.modeling import tf_hub
with tf_hub.trust_models("model.keras"):
    model = keras.saving.load_model("model.keras")
model.save("model.keras")  # over the file that it was loaded from
with tf_hub.trust_models("model.keras"):
    model = keras.saving.load_model("model.keras")
np.save("found.npy", model(dict(np.load("inputs.npz"))))
"""


@pytest.mark.long
def test_a_saved_model_can_be_moved_without_its_source(exports, rows, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(exports.encoder, source)
    model = classifier(str(source))
    for variable in model.trainable_variables:
        variable.assign_add(variable * 0.1 + 0.01)
    expected = model(rows).numpy()
    moved = tmp_path / "moved"
    moved.mkdir()
    model.save(moved / "model.keras")
    shutil.rmtree(source)
    np.savez(moved / "inputs.npz", **rows)
    subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        cwd=moved,
        env={"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "2"},
        check=True,
    )
    found = np.load(moved / "found.npy")
    np.testing.assert_allclose(found, expected, atol=1e-6)
    with pytest.raises(UserError, match="the Keras model must contain it"):
        model.save(tmp_path / "again.keras")


@pytest.mark.parametrize("trusted", [{}, {"trust_model": True}])
def test_a_keras_file_cannot_vouch_for_the_model_that_it_names(
    exports, trusted
):
    layer = {
        "module": None,
        "class_name": "HubEncoder",
        "registered_name": "bert>HubEncoder",
        "config": {"handle": exports.encoder, **trusted},
    }
    with pytest.raises(Exception, match="trust_model"):
        keras.saving.deserialize_keras_object(layer)


def test_a_trusted_file_loads_what_it_holds_only(exports, tmp_path):
    layer = tf_hub.HubEncoder(exports.encoder, trust_model=True)
    config = layer.get_config()
    path = str(tmp_path / "model.keras")
    classifier(exports.encoder).save(path)
    other = {**config, "graph": "0" * 64}
    with tf_hub.trust_models(path):
        with tf_hub.trust_models():
            pass  # then the outer context is active again
        assert tf_hub.HubEncoder.from_config(config).handle != exports.encoder
        with pytest.raises(UserError, match="not in the trusted file"):
            tf_hub.HubEncoder.from_config(other)
    expected = pytest.raises(UserError, match="not the SavedModel that")
    with tf_hub.trust_models(), expected:
        tf_hub.HubEncoder.from_config(other)
    keras.Sequential([keras.Input((1,))]).save(path)
    for wrong, message in (
        (path, "holds no SavedModel"),
        (str(tmp_path / "missing.keras"), "cannot be read"),
    ):
        expected = pytest.raises(UserError, match=message)
        with expected, tf_hub.trust_models(wrong):
            pass
