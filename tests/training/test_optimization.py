"""The optimizers and their schedule against numpy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert.common.errors import UserError
from bert.modeling import checkpoints
from bert.modeling.networks import build_pretraining_model
from bert.training import optimization
from bert.training.optimization import AdamWeightDecay, WarmupLinearDecay
from tests.helpers import small
from tests.helpers.numpy_bert import NumpyAdam


def expected_rate(step, peak, total, warmup):
    if step < warmup:
        return peak * step / warmup
    return peak * (1 - min(step, total) / total)


def gradient_at(step, name, shape, scale):
    seed = [step, *name.encode()]
    return np.random.default_rng(seed).normal(0, scale, shape)


@pytest.mark.parametrize(
    ("rule", "scale"),
    [
        ("bert_adam", 0.001),
        ("bert_adam", 1.0),
        ("corrected_adamw", 1.0),
        ("lamb", 1.0),
    ],
)
def test_six_steps_equal_numpy(rule, scale):
    """With small gradients nothing is clipped, with large ones all are."""
    model = build_pretraining_model(small.config(num_hidden_layers=1))
    named = checkpoints.model_variables(model)
    start = {n: v.numpy().astype("f8") for n, v in named.items()}
    reference = NumpyAdam(start, rule)
    schedule = WarmupLinearDecay(0.01, 7, 2)
    optimizer = AdamWeightDecay(schedule, rule=rule)
    optimizer.build(list(named.values()))
    for step in range(6):
        gradients = {
            name: gradient_at(step, name, v.shape, scale)
            for name, v in named.items()
        }
        norm = reference.step(gradients, expected_rate(step, 0.01, 7, 2))
        gradients, our_norm, factor = optimization.reduce_and_clip(
            [tf.constant(g, tf.float32) for g in gradients.values()]
        )
        optimizer.update(
            gradients, list(named.values()), schedule(step), factor=factor
        )
        optimizer.iterations.assign_add(1)
        assert float(our_norm) == pytest.approx(norm, rel=1e-5)
    for name, variable in named.items():
        np.testing.assert_allclose(
            variable.numpy(), reference.values[name], atol=1e-5
        )
    for name, slot in optimizer.named_slots(named).items():
        moments = reference.m if name.endswith("adam_m") else reference.v
        expected = moments[name.rpartition("/")[0]]
        atol = 1e-4 * np.abs(expected).max()
        np.testing.assert_allclose(slot.numpy(), expected, atol=atol)


def test_layer_norm_and_bias_are_not_decayed():
    model = build_pretraining_model(small.config())
    named = checkpoints.model_variables(model)
    optimizer = AdamWeightDecay(1.0, decay=0.5)
    optimizer.build(list(named.values()))
    before = {name: variable.numpy() for name, variable in named.items()}
    zeros = [tf.zeros(variable.shape) for variable in named.values()]
    optimizer.update(zeros, list(named.values()), 1.0)
    decayed, kept = set(), set()
    for name, variable in named.items():
        variable.assign(variable + 0)
        if (variable.numpy() == before[name]).all():
            kept.add(name)
        else:
            np.testing.assert_allclose(
                variable.numpy(), before[name] / 2, atol=1e-6
            )
            decayed.add(name)
    kinds = {name.rsplit("/", 1)[-1] for name in kept}
    assert kinds == {"gamma", "beta", "bias", "output_bias"}
    assert {name.rsplit("/", 1)[-1] for name in decayed} == {
        "kernel",
        "word_embeddings",
        "token_type_embeddings",
        "position_embeddings",
        "output_weights",
    }


def one_variable(rule, value, decay=0.01):
    variable = keras.Variable(np.array(value, "f4"), name="kernel")
    optimizer = AdamWeightDecay(1.0, decay, rule=rule)
    optimizer.build([variable])
    return variable, optimizer


def test_lambs_ratio_is_one_where_a_length_is_zero():
    variable, optimizer = one_variable("lamb", [0.0, 0.0])
    optimizer.update([tf.constant([0.1, -0.7])], [variable], 0.1)
    np.testing.assert_allclose(variable.numpy(), [-0.1, 0.1], rtol=1e-4)
    variable, optimizer = one_variable("lamb", [3.0, 4.0], decay=0.0)
    optimizer.update([tf.zeros(2)], [variable], 0.1)
    assert variable.numpy().tolist() == [3.0, 4.0]


@pytest.mark.parametrize("rule", ["bert_adam", "corrected_adamw", "lamb"])
def test_without_learning_no_bit_changes(rule):
    variable, optimizer = one_variable(rule, [3.0, -0.0])
    optimizer.update([tf.constant([0.1, -0.7])], [variable], 0.1)
    held = [variable, optimizer.adam_m[0], optimizer.adam_v[0]]
    before = [x.numpy().tobytes() for x in held]
    poison = tf.constant([np.nan, np.inf])
    optimizer.update([poison], [variable], 0.1, tf.constant(False))
    assert [x.numpy().tobytes() for x in held] == before
    optimizer.update([poison], [variable], 0.1, tf.constant(True))
    assert np.isnan(variable.numpy()).any()


def test_sparse_gradients_are_made_dense():
    sparse = tf.IndexedSlices(tf.ones([2, 3]), tf.constant([1, 1]), [5, 3])
    (gradient,), norm, factor = optimization.reduce_and_clip([sparse])
    np.testing.assert_array_equal(gradient[1], [2, 2, 2])
    assert float(norm) == pytest.approx(np.sqrt(12))
    assert float(factor) == pytest.approx(1.0 / np.sqrt(12))


def test_the_norm_has_one_sum_for_all_vectors():
    @tf.function
    def norm():
        gradients = [tf.ones(shape) for shape in ([5], [2, 3], [7])]
        return optimization.reduce_and_clip(gradients)[1]

    operations = norm.get_concrete_function().graph.get_operations()
    assert [x.type for x in operations].count("L2Loss") == 2
    assert float(norm()) == pytest.approx(np.sqrt(18))


@pytest.mark.parametrize("size", [0.0, 0.1, 7.0, 3e38, np.inf, np.nan])
def test_the_factor_is_that_of_tensorflows_clipping(size):
    gradient = tf.constant([size, 0.5 * size])
    (same,), norm, factor = optimization.reduce_and_clip([gradient])
    (expected,), expected_norm = tf.clip_by_global_norm([gradient], 1.0)
    np.testing.assert_array_equal(same, gradient)
    np.testing.assert_array_equal(same * factor, expected)
    np.testing.assert_array_equal(norm, expected_norm)


def test_fit_takes_the_step_that_update_takes():
    x, y = np.ones((4, 3), "f4"), np.full((4, 1), 9.0, "f4")
    model = keras.Sequential([keras.layers.Dense(1, use_bias=False)])
    model.build((None, 3))
    start = model.weights[0].numpy()
    error = (x @ start - y).mean()
    gradient = np.full((3, 1), 2 * error)
    reference = NumpyAdam({"kernel": start.astype("f8")})
    reference.step({"kernel": gradient}, 0.1)
    model.compile(AdamWeightDecay(0.1), "mse")
    model.fit(x, y, verbose=0)
    np.testing.assert_allclose(
        model.weights[0].numpy(), reference.values["kernel"], atol=1e-5
    )


def test_fit_accumulates_gradients_as_keras_does():
    x, y = np.ones((8, 3), "f4"), np.full((8, 1), 9.0, "f4")
    y[4:] = 5.0  # two batches of other gradients
    weights = []
    for named, batch_size in (({"gradient_accumulation_steps": 2}, 4), ({}, 8)):
        model = keras.Sequential([keras.layers.Dense(1, use_bias=False)])
        model.build((None, 3))
        model.set_weights([np.ones((3, 1), "f4")])
        model.compile(AdamWeightDecay(0.1, **named), "mse")
        model.fit(x, y, batch_size=batch_size, shuffle=False, verbose=0)
        weights.append(model.get_weights()[0])
        assert model.optimizer.step == 1
    np.testing.assert_allclose(*weights, atol=1e-5)
    assert not np.allclose(weights[0], 1.0)


def test_variables_without_a_gradient_stay_as_they_are():
    variables = [keras.Variable([2.0], name=f"bias_{i}") for i in range(3)]
    optimizer = AdamWeightDecay(0.1)
    optimizer.build(variables)
    optimizer.rate_factors = (1.0, 1.0, 0.5)
    optimizer.apply([None, tf.ones(1), tf.ones(1)], variables)
    moved = [2.0 - float(value.numpy()[0]) for value in variables]
    assert moved[0] == 0 and moved[1] == pytest.approx(2 * moved[2]) != 0
    assert [bool(m.numpy()) for m in optimizer.adam_m] == [False, True, True]


def test_the_config_makes_the_optimizer_again():
    given = {"decay": 0.5, "beta_1": 0.8, "beta_2": 0.99, "epsilon": 1e-5}
    given["rule"] = "lamb"
    optimizer = AdamWeightDecay(WarmupLinearDecay(0.3, 7, 2), **given)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert {name: getattr(again, name) for name in given} == given
    assert again.get_config() == optimizer.get_config()


def test_the_config_of_an_earlier_version_makes_the_optimizer():
    config = {**AdamWeightDecay().get_config(), "rule": "adamw"}
    assert AdamWeightDecay.from_config(config).rule == "bert_adam"


def test_a_second_weight_decay_is_rejected():
    with pytest.raises(UserError, match="weight_decay; pass decay"):
        optimization.AdamWeightDecay(0.1, weight_decay=0.01)


def test_variables_of_a_lower_policy_are_trained():
    """Their moments are float32: in float16 small squares would be 0."""
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(7), keras.layers.LayerNormalization()]
    for layer in layers:
        layer.dtype_policy = "float16"
    last = keras.layers.Dense(1, dtype="float32")
    model = keras.Sequential([keras.Input((5,)), *layers, last])
    model.compile(AdamWeightDecay(0.03), "mse", jit_compile=False)
    x = np.random.default_rng(1).normal(size=(11, 5))
    history = model.fit(x, x[:, :1], 11, epochs=43, verbose=0).history
    assert history["loss"][-1] < 0.3 * history["loss"][0]
    assert {x.dtype for x in model.weights} == {"float16", "float32"}
    assert {x.dtype for x in model.optimizer.adam_v} == {"float32"}
