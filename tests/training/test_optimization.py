"""The optimizers and their schedules against NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert.common.errors import UserError
from bert.modeling import checkpoints
from bert.modeling.networks import build_pretraining_model
from bert.training import optimization
from bert.training.optimization import (
    AdamWeightDecay,
    WarmupLinearDecay,
    WarmupStableDecay,
)
from tests.helpers import small
from tests.helpers.numpy_bert import NumpyAdam

PEAK, STEPS = 0.7, 11


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
    optimizer = AdamWeightDecay(rule=rule)
    optimizer.build(list(named.values()))
    for step, rate in enumerate([0.0, 0.005, 0.01, 0.009, 0.007, 0.001]):
        gradients = {
            name: gradient_at(step, name, v.shape, scale)
            for name, v in named.items()
        }
        norm = reference.step(gradients, rate)
        gradients, our_norm, factor = optimization.sum_and_clip_factor(
            [tf.constant(g, tf.float32) for g in gradients.values()]
        )
        optimizer.update(gradients, list(named.values()), rate, factor=factor)
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


def one_variable(rule, value, dtype="float32", decay=0.01):
    variable = keras.Variable(np.array(value), dtype=dtype, name="kernel")
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


def test_lamb_without_decay_adapts_the_rate():
    """Unlike for an excluded variable, whose decay is None."""
    variable, optimizer = one_variable("lamb", [3.0, 4.0], decay=0.0)
    optimizer.update([tf.constant([1.0, 1.0])], [variable], 0.1)
    moved = np.linalg.norm(variable.numpy() - [3.0, 4.0])
    np.testing.assert_allclose(moved, 0.1 * 5.0, rtol=1e-5)


def test_the_norm_includes_scalars():
    gradients = [tf.constant(3.0), tf.constant([4.0])]
    assert optimization.sum_and_clip_factor(gradients)[1] == 5.0


def test_the_norm_has_one_sum_for_all_vectors():
    @tf.function
    def norm():
        gradients = [tf.ones(shape) for shape in ([5], [2, 3], [7])]
        return optimization.sum_and_clip_factor(gradients)[1]

    operations = norm.get_concrete_function().graph.get_operations()
    assert [x.type for x in operations].count("L2Loss") == 2
    assert float(norm()) == pytest.approx(np.sqrt(18))


@pytest.mark.parametrize("size", [0.0, 0.1, 7.0, 3e38, np.inf, np.nan])
def test_the_factor_is_that_of_tensorflows_clipping(size):
    dense = tf.constant([size, 0.5 * size])
    sparse = tf.IndexedSlices([dense, dense], tf.constant([1, 1]), [5, 2])
    gradients = [dense, tf.convert_to_tensor(sparse)]
    same, norm, factor = optimization.sum_and_clip_factor([dense, sparse])
    expected, expected_norm = tf.clip_by_global_norm(gradients, 1.0)
    np.testing.assert_array_equal(norm, expected_norm)
    for ours, gradient, clipped in zip(same, gradients, expected, strict=True):
        np.testing.assert_array_equal(ours, gradient)
        np.testing.assert_array_equal(ours * factor, clipped)


@pytest.mark.parametrize("parts", [1, 2])
def test_fit_takes_the_step_of_the_whole_batch(parts):
    """Also with Keras' accumulation of gradients."""
    x, y = np.ones((8, 3), "f4"), np.full((8, 1), 9.0, "f4")
    y[4:] = 5.0  # two batches of other gradients
    model = keras.Sequential([keras.layers.Dense(1, use_bias=False)])
    model.build((None, 3))
    model.set_weights([np.ones((3, 1), "f4")])
    reference = NumpyAdam({"kernel": np.ones((3, 1))})
    reference.step({"kernel": np.full((3, 1), 2 * np.mean(3 - y))}, 0.1)
    named = {"gradient_accumulation_steps": parts} if parts > 1 else {}
    model.compile(AdamWeightDecay(0.1, **named), "mse")
    model.fit(x, y, batch_size=8 // parts, shuffle=False, verbose=0)
    assert model.optimizer.step == 1
    np.testing.assert_allclose(
        model.weights[0].numpy(), reference.values["kernel"], atol=1e-5
    )


def test_variables_without_a_gradient_stay_as_they_are():
    variables = [keras.Variable([2.0], name=f"bias_{i}") for i in range(3)]
    optimizer = AdamWeightDecay(0.1)
    optimizer.build(variables)
    optimizer.rate_factors = (1.0, 1.0, 0.5)
    optimizer.apply([None, tf.ones(1), tf.ones(1)], variables)
    moved = [2.0 - float(value.numpy()[0]) for value in variables]
    assert moved[0] == 0 and moved[1] == pytest.approx(2 * moved[2]) != 0
    assert [bool(m.numpy()) for m in optimizer.adam_m] == [False, True, True]
    frozen = keras.Variable([1.0], trainable=False)
    named = {"a": frozen, "b": variables[2]}
    assert optimizer.named_slots(named) == {
        "b/adam_m": optimizer.adam_m[2],
        "b/adam_v": optimizer.adam_v[2],
    }


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


def test_moments_of_a_float16_variable_are_float32():
    """In float16 the squares of small gradients would be 0."""
    variable, optimizer = one_variable("bert_adam", [3.0, 4.0], "float16")
    optimizer.update([tf.constant([1e-5, 0.0])], [variable], 0.5)
    squares = optimizer.adam_v[0].numpy()
    np.testing.assert_allclose(squares, [1e-13, 0.0], rtol=1e-5)
    assert variable.numpy().dtype == "float16"
    update = 1e-6 / (np.sqrt(1e-13) + 1e-6)
    expected = [3.0 - 0.5 * (update + 0.03), 4.0 - 0.5 * 0.04]
    np.testing.assert_allclose(variable.numpy(), expected, rtol=1e-3)


@pytest.mark.parametrize("warmup", [0, 3, 11])
@pytest.mark.parametrize("decay", [None, 0, 5, 11])
def test_rates_of_steps_equal_numpy(warmup, decay):
    """Decay None: linear from step 0; 0: none."""
    steps = np.arange(13)
    if decay is None:
        schedule = WarmupLinearDecay(PEAK, STEPS, warmup)
        later = 1 - steps.clip(max=STEPS) / STEPS
    else:
        schedule = WarmupStableDecay(PEAK, STEPS, warmup, decay)
        share = (steps - STEPS + decay) / max(decay, 1)
        later = 1 - np.sqrt(share.clip(0, 1)) if decay else np.ones(13)
    expected = np.where(steps < warmup, steps / max(warmup, 1), later)
    rates = [float(schedule(step)) for step in steps]
    np.testing.assert_allclose(rates, PEAK * expected, atol=1e-6)
