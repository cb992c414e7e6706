"""The end of a script that trains."""

import signal

import pytest
import tensorflow as tf

from bert.runs import signals


def failing(message):
    def main(argv):
        raise tf.errors.ResourceExhaustedError(None, None, message)

    return main


def allocate(argv):
    tf.zeros([1 << 43])  # TensorFlow tries for ten seconds


@pytest.mark.parametrize(
    "main",
    [
        failing("OOM when allocating tensor with shape[8]"),
        failing("Out of memory while trying to allocate 8 bytes"),
        pytest.param(allocate, marks=pytest.mark.long),
    ],
)
def test_a_device_without_memory_is_one_line(capsys, main):
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert signals.run(main) == 2
    finally:
        signal.signal(signal.SIGTERM, before)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: the device is out of memory: O")
    assert "raise --gradient_accumulation_steps" in line
