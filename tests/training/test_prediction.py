"""A predictor gives each row its own output on any number of devices."""

import numpy as np
import pytest
import tensorflow as tf

from training import distribution, prediction


@pytest.mark.parametrize("kind", ["one_device", "mirrored"])
@pytest.mark.parametrize("rows", [1, 3, 4, 7])
def test_rows_come_back_in_order(kind, rows):
    predictor = prediction.Predictor(
        lambda batch: {
            "sum": tf.reduce_sum(batch["x"], 1) + batch["y"],
            "x": batch["x"],
        },
        distribution.make_strategy(kind),
        7,
    )
    rng = np.random.default_rng(rows)
    x = rng.normal(size=(rows, 5)).astype("f4")
    y = rng.normal(size=rows).astype("f4")
    found = predictor({"x": x, "y": y})
    np.testing.assert_array_equal(found["x"], x)
    np.testing.assert_allclose(found["sum"], x.sum(1) + y, rtol=1e-6)
