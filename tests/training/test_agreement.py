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
        def gather_rows(strategy, *own):
            assert own == tuple(rows[0])
            return np.array(rows, "f8")

        monkeypatch.setattr(collectives, "gather", gather_rows)

    return gather


def test_a_process_alone_agrees_with_itself():
    strategy = tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice()
    )
    assert collectives.gather(strategy, 3, 0.5).tolist() == [[3.0, 0.5]]
    collectives.check_settings(strategy, {"--learning_rate": 5e-5})


def test_workers_with_other_settings_are_rejected(gathered):
    settings = {"--learning_rate": 5e-5, "records": ["a", 7]}
    settings["sizes"] = {"b": 2, "a": None}  # in any order
    texts = (b"5e-05", b'["a", 7]', b'{"a": null, "b": 2}')
    hashes = [*map(zlib.crc32, texts)]
    gathered(hashes, hashes)
    collectives.check_settings(None, settings)
    gathered(hashes, [hashes[0] + 1, hashes[1] - 1, hashes[2]])
    with pytest.raises(UserError) as caught:
        collectives.check_settings(None, settings, "share it")
    assert str(caught.value) == (
        "workers differ in --learning_rate, records; expected the same "
        "command and files on all workers; share it"
    )
