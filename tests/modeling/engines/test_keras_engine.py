"""Batches of the Keras engine on several devices and on a TPU."""

import hypothesis
import numpy as np
from hypothesis import strategies as st

from bert.data import feature_names, sequence_packing
from bert.modeling.engines import keras_engine

MAX_TOKENS = sequence_packing.MAX_TOKENS


@hypothesis.given(
    st.integers(1, 40),
    st.integers(1, 520),
    st.integers(1, 20),
    st.integers(1, 8),
    st.booleans(),
)
@hypothesis.example(3, 256, 16, 2, True)
def test_devices_get_equal_parts_of_few_shapes(
    rows, width, sequences, replicas, is_static
):
    """A TPU compiles a program for each shape."""
    inputs = {
        name: np.ones((rows, width), np.int32)
        for name in (
            *feature_names.ENCODER_INPUTS,
            *feature_names.PACKED_INPUTS,
        )
    }
    positions = feature_names.NEXT_SENTENCE_POSITIONS
    inputs[positions] = np.ones((rows, sequences), np.int32)
    found = keras_engine._padded(inputs, replicas, is_static)
    least = 1
    if is_static:
        sizes = [2**i for i in range(20)]
        width = next(x for x in sizes if x >= max(width, 128))
        sequences = next(x for x in sizes if x >= max(sequences, 8))
        least = MAX_TOKENS / width
    part = next(x for x in range(replicas, 999, replicas) if x >= least)
    count = next(x for x in range(part, 9999, part) if x >= rows)
    for name, x in found.items():
        columns = sequences if name == positions else width
        expected = np.zeros((count, columns), np.int32)
        expected[:rows, : inputs[name].shape[1]] = 1
        np.testing.assert_array_equal(x, expected)
