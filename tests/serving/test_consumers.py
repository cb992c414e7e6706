"""Consumers of the exports, in a process that never imports this project."""

import json
import os
import subprocess
import sys

import pytest

from tests.helpers import tf_hub_exports

CONSUMER = r"""
import json, sys
import tensorflow as tf

encoder, preprocessor = sys.argv[1:]
tf.saved_model.load(encoder)  # as TF Serving, without TF Text

import tensorflow_hub as hub
import tensorflow_text
import tf_keras

texts = ["the cat sees a dog .", "red birds", "a tree", "old old fish ."] * 2
labels = [1, 1, 0, 0] * 2
dataset = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(8)
text = tf_keras.Input((), dtype=tf.string)
inputs = hub.KerasLayer(preprocessor)(text)
layer = hub.KerasLayer(encoder, trainable=True)
outputs = layer(inputs)
# With random weights the pooler is often saturated, and alone learns nothing.
mean = tf_keras.layers.GlobalAveragePooling1D()(outputs["sequence_output"])
x = tf_keras.layers.Concatenate()([outputs["pooled_output"], mean])
head = tf_keras.layers.Dense(2, kernel_initializer="zeros")
model = tf_keras.Model(text, head(x))
before = {v.name: v.numpy() for v in layer.trainable_variables}
head = len(model.trainable_variables) - len(before)
model.compile(
    tf_keras.optimizers.Adam(0.01),
    tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
losses = [model.evaluate(dataset, verbose=0)]  # without dropout
model.fit(dataset, epochs=29, verbose=0)
losses.append(model.evaluate(dataset, verbose=0))
moved = [
    name
    for name, value in ((v.name, v.numpy()) for v in layer.trainable_variables)
    if abs(value - before[name]).max() > 0
]
ours = {"data", "modeling", "serving", "training", "errors", "export_hub"}
print(json.dumps({
    "losses": losses,
    "head": head,
    "variables": len(before),
    "moved": len(moved),
    "ours": sorted(ours & {name.split(".")[0] for name in sys.modules}),
}))
"""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    return tf_hub_exports.made(tmp_path_factory)


@pytest.mark.long
def test_consumers_that_know_nothing_of_this_project(exports, tmp_path):
    environment = {n: x for n, x in os.environ.items() if n != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", CONSUMER, exports.encoder, exports.preprocessor],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["ours"] == [] and told["head"] == 2
    before, after = told["losses"]
    assert after < 0.8 * before
    # What is added to all keys alike changes no attention.
    assert told["moved"] >= told["variables"] - exports.config.num_hidden_layers
