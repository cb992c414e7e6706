"""The end of a script that trains."""

import signal

import tensorflow as tf

from bert.common import main as common_main
from bert.tasks import main as tasks_main


def test_a_device_without_memory_is_one_line(capsys):
    def main(argv):  # TensorFlow itself tries for ten seconds
        raise tf.errors.ResourceExhaustedError(
            None, None, "OOM when allocating tensor with shape[8]"
        )

    signals = signal.getsignal(signal.SIGTERM)
    try:
        assert common_main.run(main, [], *tasks_main.hooks()) == 2
    finally:
        signal.signal(signal.SIGTERM, signals)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: the device is out of memory: OOM when")
    assert "raise --gradient_accumulation_steps" in line
