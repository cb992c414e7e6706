"""Exports beside those of Model Garden; only in `make test-long`."""

import pathlib
import subprocess

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert.modeling import checkpoints, tf_hub
from bert.modeling.config import BertConfig
from tests.helpers import garden_files, tf_hub_exports

ROOT = pathlib.Path(__file__).parents[2]
PEER = ROOT / ".venv-peers" / "model_garden" / "bin" / "python"
SCRIPT = ROOT / "benchmarks" / "peers" / "model_garden_outputs.py"
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    return tf_hub_exports.made(tmp_path_factory)


@pytest.fixture(scope="module")
def theirs(exports, tmp_path_factory):
    """Folder with the `encoder` of their exporter."""
    folder = tmp_path_factory.mktemp("theirs")
    config = exports.folder / "bert_config.json"
    sizes = BertConfig.from_json_file(str(config))
    values = checkpoints.read(f"{exports.folder}/bert_model.ckpt")
    named = garden_files.write_named(folder / "values.npz", sizes, values)
    vocab = exports.folder / "vocab.txt"
    words = ("export", named, config, vocab, folder / "encoder")
    subprocess.run([PEER, SCRIPT, *words], check=True)
    return folder


def shapes(outputs):
    return tf.nest.map_structure(
        lambda x: (x.dtype.name, tuple(x.shape)), dict(outputs)
    )


def test_our_encoder_has_the_parts_of_theirs(exports, theirs):
    ours = tf_hub.load(exports.encoder, trust_model=True)
    other = tf_hub.load(str(theirs / "encoder"), trust_model=True)
    rows = tf_hub_exports.rows()
    inputs = tf_hub_exports.theirs(rows)
    more = {**inputs, "masked_lm_positions": rows["masked_lm_positions"]}
    for training in (False, True):
        assert shapes(ours(inputs, training=training)) == shapes(
            other(inputs, training=training)
        )
    ours_mlm = shapes(ours.mlm(more))
    del ours_mlm["default"]  # in theirs only the encoder has it
    assert ours_mlm == shapes(other.mlm(more))
    for a, b in ((ours, other), (ours.mlm, other.mlm)):
        found = [
            {
                v.name.removeprefix("bert/"): tuple(v.shape)
                for v in x.trainable_variables
            }
            for x in (a, b)
        ]
        assert found[0] == found[1]
        assert list(a.regularization_losses) == list(b.regularization_losses)
    assert ours.do_lower_case.dtype == other.do_lower_case.dtype
    specs = [
        x.signatures["serving_default"].structured_input_signature[1]
        for x in (ours, other)
    ]
    assert specs[0].keys() == specs[1].keys()


def test_our_layer_trains_theirs(exports, theirs):
    rows = tf_hub_exports.rows()
    expected = exports.expected(rows)
    layer = tf_hub.HubEncoder(str(theirs / "encoder"), "mlm", trust_model=True)
    for name, value in layer(rows).items():
        if name != "encoder_outputs":
            np.testing.assert_allclose(value, expected[name], atol=1e-5)
    inputs = {
        name: keras.Input((None,), dtype="int32", name=name)
        for name in tf_hub_exports.ENCODER
    }
    layer = tf_hub.HubEncoder(str(theirs / "encoder"), trust_model=True)
    x = layer(inputs)["pooled_output"]
    head = keras.layers.Dense(2, kernel_initializer="zeros")
    model = keras.Model(inputs, head(x))
    model.compile(
        keras.optimizers.Adam(0.01),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    before = [v.numpy() for v in layer.trainable_variables]
    some = {name: rows[name] for name in tf_hub_exports.ENCODER}
    labels = np.array([0, 1])
    loss = model.evaluate(some, labels, verbose=0)  # without dropout
    model.fit(some, labels, epochs=59, verbose=0)
    assert model.evaluate(some, labels, verbose=0) < 0.8 * loss
    moved = zip(layer.trainable_variables, before)
    assert sum(np.abs(v.numpy() - x).max() > 0 for v, x in moved) > 30
