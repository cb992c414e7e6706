"""A predictor returns the output of each example, on all devices."""

import numpy as np
import pytest
import tensorflow as tf

from training import distribution, prediction


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
    np.testing.assert_allclose(found["sum"], x.sum(1) + y, rtol=1e-6)
