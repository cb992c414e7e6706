"""Dropout is a function of its seed."""

import numpy as np
import pytest
import tensorflow as tf

from bert.modeling import dropout
from bert.modeling.dropout import Dropout, dropout_seed

ONES = tf.ones([101, 103])


def drop(rate, salt, seed, x=ONES):
    with dropout_seed(tf.constant(seed)):
        return Dropout(rate, salt)(x, training=True).numpy()


@pytest.mark.parametrize(
    ("salt", "seed"),
    [(x, [1, 2]) for x in (4, 2, 3 + 2**20, 3 + 2**30)]
    + [(3, [1, 3]), (3, [2, 2])],
)
def test_masks_of_layers_and_of_seeds_are_independent(salt, seed):
    x = tf.ones([503, 499])
    first, second = (drop(0.1, *y, x) == 0 for y in ((3, [1, 2]), (salt, seed)))
    assert second[first].mean() == pytest.approx(0.1, abs=0.01)


def test_without_a_seed_each_call_draws_afresh():
    layer = Dropout(0.5, 3)
    first, second = (layer(ONES, training=True).numpy() for _ in range(2))
    assert (first == second).mean() == pytest.approx(0.5, abs=0.03)


def test_the_inner_seed_holds_and_the_outer_comes_back():
    layer = Dropout(0.5, 3)
    with dropout_seed(tf.constant([1, 2])):
        before = layer(ONES, training=True).numpy()
        with dropout_seed(tf.constant([5, 6])):
            inner = layer(ONES, training=True).numpy()
        after = layer(ONES, training=True).numpy()
    assert (before == after).all()
    assert (before != inner).any()


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.9])
def test_the_mask_is_the_documented_hash_of_index_and_key(rate):
    """The rest is scaled up; the gradient has the same mask."""
    key = np.array([123456789, -5], "int32")
    a, b = key.view("uint32")
    bits = np.arange(7 * 5 * 1103, dtype="uint32") * np.uint32(0x9E3779B9) + a
    bits = (bits ^ bits >> 16) * np.uint32(0x85EBCA6B) ^ b
    bits = (bits ^ bits >> 13) * np.uint32(0xC2B2AE35)
    kept = (bits ^ bits >> 16) >= np.uint32(round(2**32 * rate))
    assert kept.mean() == pytest.approx(1 - rate, abs=0.01)
    expected = kept.reshape(7, 5, 1103) / (1 - rate)
    x = tf.ones(expected.shape)
    with tf.GradientTape() as tape:
        tape.watch(x)
        found = dropout.drop(x, tf.constant(key), rate)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_array_equal(tape.gradient(found, x), found)


def test_no_constant_is_as_large_as_the_mask():
    """A compiler would compute it at once: gigabytes for a large network."""
    x, key = tf.TensorSpec([30, 20, 10]), tf.TensorSpec([2], tf.int32)
    step = tf.function(lambda x, key: dropout.drop(x, key, 0.1))
    graph = step.get_concrete_function(x, key).graph
    depends = {tensor.op for tensor in graph.inputs}
    for operation in graph.get_operations():
        inputs = {tensor.op for tensor in operation.inputs}
        if inputs & depends and operation.type != "Shape":
            depends.add(operation)
    constants = [
        tensor.shape.num_elements()
        for operation in graph.get_operations()
        if operation not in depends
        for tensor in operation.outputs
    ]
    assert constants and max(constants) == 30 * 20
