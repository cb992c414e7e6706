"""Batches of the Keras engine: few tokens, several devices, and a TPU."""

import queue
import threading

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from bert.data import feature_names, sequence_packing
from bert.modeling import checkpoints, networks, task_heads
from bert.modeling.engines import keras_engine
from bert.modeling.engines.keras_engine import KerasEngine
from tests.helpers import small

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


def test_the_end_of_a_process_waits_for_a_program(monkeypatch):
    """XLA crashes if it compiles then; the threads of servers are daemons."""
    found: queue.Queue = queue.Queue()
    monkeypatch.setattr(
        keras_engine._Programs,
        "_compile",
        lambda *_: found.put(threading.current_thread().daemon),
    )
    row = np.ones((1, 8), np.int32)
    names = feature_names.INPUT_IDS, feature_names.NEXT_SENTENCE_POSITIONS
    programs = keras_engine._Programs(None)

    def work():
        for _ in range(16):
            programs.find(dict.fromkeys(names, row))

    threading.Thread(target=work, daemon=True).start()
    assert found.get(timeout=60) is False


@pytest.mark.parametrize("head", [None, task_heads.CLASSIFIER])
def test_a_program_gives_the_outputs_of_the_graph(head):
    """Rows of several sequences, and padded ones, after 16 of a shape."""
    network = networks.build(small.config(), task_heads.CLASSIFIER, 3)
    layer = head and network.get_layer(head)
    engine = KerasEngine(checkpoints.encoder_of(network), layer)
    rng = np.random.default_rng(5)
    ids = [1, 1, 1, 1, 2, 2, 2, 2, 2, 3]
    row = np.array([ids], np.int32)
    inputs = {
        feature_names.INPUT_IDS: rng.integers(0, 30, row.shape, np.int32),
        feature_names.INPUT_MASK: np.ones_like(row),
        feature_names.SEGMENT_IDS: rng.integers(0, 2, row.shape, np.int32),
        feature_names.POSITION_IDS: np.int32([[*range(4), *range(5), 0]]),
        feature_names.SEQUENCE_IDS: row,
        feature_names.NEXT_SENTENCE_POSITIONS: np.int32([[0, 4, 9]]),
    }
    expected = engine(inputs)
    assert expected.shape[1] == (3 if head else 10)
    for _ in range(15):
        np.testing.assert_array_equal(engine(inputs), expected)
    while engine(inputs).shape == expected.shape:
        pass  # another thread compiles; the time limit of tests holds
    found = engine(inputs)
    assert found.shape[1] == (4 if head else 12)
    real = found[:, : expected.shape[1]]
    np.testing.assert_allclose(real, expected, rtol=0, atol=1e-5)

    # It uses the weights of the moment.
    for variable in network.trainable_variables:
        variable.assign(variable / 2)
    again = engine(inputs)[:, : expected.shape[1]]
    wider = {name: np.tile(x, (2, 1)) for name, x in inputs.items()}
    np.testing.assert_allclose(again, engine(wider)[:1], rtol=0, atol=1e-5)
