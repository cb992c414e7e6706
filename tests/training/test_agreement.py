"""Agreement of simulated workers; real ones are in test_workers.py."""

import zlib

import numpy as np
import pytest
import tensorflow as tf

from bert.common.errors import UserError
from bert.training import collectives


@pytest.fixture
def gathered(monkeypatch):
    """Sets the numbers that `gather` returns."""

    def gather(*rows):
        monkeypatch.setattr(
            collectives, "gather", lambda strategy, *own: np.array(rows, "f8")
        )

    return gather


def test_a_process_alone_agrees_with_itself():
    strategy = tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice()
    )
    assert collectives.gather(strategy, 3, 0.5).tolist() == [[3.0, 0.5]]
    collectives.check_settings(strategy, {"--learning_rate": 5e-5})


def test_workers_with_other_settings_are_rejected(gathered):
    settings = {"--learning_rate": 5e-5, "records": ["a", 7], "--phases": None}
    hashes = [zlib.crc32(x) for x in (b"5e-05", b'["a", 7]', b"null")]
    gathered(hashes, hashes)
    collectives.check_settings(None, settings)
    gathered(hashes, [hashes[0] + 1, hashes[1] - 1, hashes[2]])
    with pytest.raises(UserError) as caught:
        collectives.check_settings(None, settings, "share it")
    assert str(caught.value) == (
        "workers differ in --learning_rate, records; expected the same "
        "command and files on all workers; share it"
    )
