"""A predictor returns the output of each example, on all devices."""

import numpy as np
import pytest
import tensorflow as tf

from bert.training import distribution, prediction


@pytest.mark.parametrize("kind", ["one_device", "mirrored"])
@pytest.mark.parametrize("count", [1, 3, 4, 7])
def test_outputs_are_in_the_order_of_the_examples(kind, count):
    predictor = prediction.Predictor(
        lambda batch: {
            "sum": tf.reduce_sum(batch["x"], 1) + batch["y"],
            "x": batch["x"],
        },
        distribution.make_strategy(kind),
        7,
    )
    rng = np.random.default_rng(count)
    x = rng.normal(size=(count, 5)).astype("f4")
    y = rng.normal(size=count).astype("f4")
    found = predictor({"x": x, "y": y})
    np.testing.assert_array_equal(found["x"], x)
    np.testing.assert_allclose(found["sum"], x.sum(1) + y, atol=1e-5)


@pytest.mark.parametrize("is_tpu", [True, False])
def test_a_tpu_is_given_static_shapes_only(monkeypatch, is_tpu):
    """Each shape is a program there; elsewhere few are traced."""
    monkeypatch.setattr(distribution, "is_tpu", lambda strategy: is_tpu)
    traced = []

    def double(batch):
        traced.append(batch["x"].shape.as_list())
        return {"x": 2 * batch["x"]}

    strategy = distribution.make_strategy("mirrored")
    predictor = prediction.Predictor(double, strategy, 7)
    for shape in [(7, 5), (3, 5), (7, 11), (2, 13), (1, 5)]:
        x = np.ones(shape, "f4")
        np.testing.assert_array_equal(predictor({"x": x})["x"], 2 * x)
    found = {tuple(shape) for shape in traced}
    if is_tpu:
        assert found == {(2, 5), (2, 11), (2, 13)}
    else:
        assert (None, None) in found
