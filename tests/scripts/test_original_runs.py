"""Runs of the original are continued with their moments and step."""

import re

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import config

import run_pretraining
from bert.common.formats import tensor_files
from bert.data import feature_names
from bert.data.records import reader
from bert.modeling import checkpoints, losses
from bert.modeling.networks import build_pretraining_model
from tests.helpers import small
from tests.helpers.pretraining_files import tensors, write_records
from tests.helpers.small import P, S

pytestmark = pytest.mark.slow
v1 = tf.compat.v1
RECORDS, ROWS, STEPS, SAVED = 23, 4, 5, 3
PEAK, WARMUP = 0.01, 2
ENDINGS = ("/adam_m", "/adam_v", "global_step")  # of what a run adds


class Original:
    """The original's update of the variables in a graph, step by step.

    Moments are variables beside the weights, the gradient is clipped before
    the update, and nothing is corrected for bias (optimization.py of
    google-research/bert).
    """

    def __init__(self, values):
        with tf.Graph().as_default() as graph:
            self._gradients = {
                name: v1.placeholder(tf.float32, value.shape)
                for name, value in values.items()
            }
            step = v1.train.get_or_create_global_step()
            rate = v1.train.polynomial_decay(
                PEAK, step, STEPS, end_learning_rate=0.0, power=1.0
            )
            begun = tf.cast(step, tf.float32) / WARMUP
            rate = tf.where(begun < 1, PEAK * begun, rate)
            clipped, _ = tf.clip_by_global_norm(
                list(self._gradients.values()), clip_norm=1.0
            )
            updates = []
            for (name, value), gradient in zip(values.items(), clipped):
                updates += self._update(name, value, gradient, rate)
            with tf.control_dependencies(updates):
                self._train = step.assign_add(1).op
            self._saver = v1.train.Saver()
            self._session = v1.Session(graph=graph)
            self._session.run(v1.global_variables_initializer())

    def _update(self, name, value, gradient, rate):
        weight = v1.get_variable(name, initializer=value)
        m, v = (
            v1.get_variable(
                f"{name}/{slot}",
                value.shape,
                trainable=False,
                initializer=v1.zeros_initializer(),
            )
            for slot in ("adam_m", "adam_v")
        )
        next_m = 0.9 * m + 0.1 * gradient
        next_v = 0.999 * v + 0.001 * tf.square(gradient)
        update = next_m / (tf.sqrt(next_v) + 1e-6)
        if not re.search("LayerNorm|layer_norm|bias", name):
            update += 0.01 * weight
        return [
            weight.assign(weight - rate * update),
            m.assign(next_m),
            v.assign(next_v),
        ]

    def take(self, gradients):
        """Takes a step with the gradient of each name."""
        fed = {self._gradients[name]: x for name, x in gradients.items()}
        self._session.run(self._train, fed)

    def weights(self):
        with self._session.graph.as_default():
            variables = {x.op.name: x for x in v1.global_variables()}
        return self._session.run(variables)

    def save(self, prefix):
        with self._session.graph.as_default():
            return self._saver.save(
                self._session, prefix, v1.train.get_global_step()
            )


def gradients_at(model, named, values, batch):
    for name, variable in named.items():
        variable.assign(values[name])
    variables = [variable.value for variable in named.values()]
    with tf.GradientTape() as tape:
        inputs = {name: batch[name] for name in model.input}
        sums = losses.pretraining_sums(batch, model(inputs))
        weights = losses.pretraining_weights(batch)
        loss = tf.add_n([sums[f"{x}_loss"] / weights[x] for x in weights])
    found = tape.gradient(loss, variables)
    return {
        name: tf.convert_to_tensor(gradient).numpy()
        for name, gradient in zip(named, found, strict=True)
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("original")
    write_records(folder / "train.tfrecord", RECORDS)
    config = small.config(num_hidden_layers=1)
    (folder / "config.json").write_text(config.to_json())
    return folder


@pytest.fixture(scope="module")
def original(folder):
    """(checkpoint of step 3, all variables at step 5) of the original."""
    model = build_pretraining_model(small.config(num_hidden_layers=1))
    named = checkpoints.model_variables(model)
    run = Original({name: x.numpy() for name, x in named.items()})
    batches = reader.training_batches(
        [str(folder / "train.tfrecord")],
        RECORDS,
        feature_names.pretraining_schema(S, P),
        ROWS,
        12345,
        0,
    )
    for step, batch in enumerate(batches.take(STEPS)):
        if step == SAVED:
            prefix = run.save(str(folder / "model.ckpt"))
        run.take(gradients_at(model, named, run.weights(), batch))
    return prefix, run.weights()


@pytest.fixture
def resume(folder, run_script, tmp_path):
    """Continues a checkpoint to step 5; returns the error."""

    def run(checkpoint, code=0):
        found, _, err = run_script(
            run_pretraining,
            "--do_train",
            "--resume_optimizer",
            "--noreport",
            init_checkpoint=checkpoint,
            input_file=folder / "train.tfrecord",
            bert_config_file=folder / "config.json",
            train_batch_size=ROWS,
            num_train_steps=STEPS,
            num_warmup_steps=WARMUP,
            learning_rate=PEAK,
            output_dir=tmp_path / "run",
        )
        assert found == code, err
        return err

    return run


def test_the_next_steps_are_those_of_the_original(original, resume, tmp_path):
    prefix, expected = original
    assert prefix.endswith("model.ckpt-3")
    assert f"resuming from step 3 in {prefix}\n" in resume(prefix)
    assert config.is_op_determinism_enabled()  # as for any run
    found = tensors(tmp_path / "run" / "model.ckpt-5")
    assert set(found) == set(expected) and found.pop("global_step") == 5
    for ending in ("/adam_m", "/adam_v", ""):
        names = [x for x in found if x.endswith(ending)]
        # The gradient of a key's bias is the noise around zero.
        scale = max(np.abs(expected[name]).max() for name in names)
        for name in names:
            value = found.pop(name)
            np.testing.assert_allclose(value, expected[name], 0, 1e-5 * scale)


def test_a_checkpoint_without_moments_is_rejected(original, resume, tmp_path):
    """As those that the original released."""
    path = str(tmp_path / "released.ckpt")
    tensor_files.write(path, tensor_files.read(original[0], ENDINGS))
    line = resume(path, 2).splitlines()[-1]
    assert line.startswith(f"error: {path}: has no global_step")
    assert line.endswith("omit --resume_optimizer")
    assert not (tmp_path / "run").exists()
