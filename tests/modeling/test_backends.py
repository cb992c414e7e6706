"""The network on another backend of Keras; tests/long has JAX and PyTorch."""

import os
import subprocess
import sys

import numpy as np
import pytest

from bert.modeling import networks, task_heads
from tests.helpers import small

PREDICT = """
import sys

import keras
import numpy as np

from bert.modeling import networks

assert "tensorflow" not in sys.modules
model = keras.saving.load_model(sys.argv[1])
logits = model.predict(dict(np.load(sys.argv[2])), verbose=0)["logits"]
np.save(sys.argv[3], logits)
"""


@pytest.mark.slow
def test_a_network_predicts_with_openvino_as_the_backend(tmp_path):
    model = networks.build(small.config(), task_heads.CLASSIFIER, 3)
    batch = small.batch()
    inputs = {name: np.int32(batch[name]) for name in model.input}
    files = [tmp_path / x for x in ("model.keras", "in.npz", "logits.npy")]
    model.save(files[0])
    np.savez(files[1], **inputs)
    subprocess.run(
        [sys.executable, "-c", PREDICT, *files],
        env={**os.environ, "KERAS_BACKEND": "openvino"},
        check=True,
    )
    expected = model.predict(inputs, verbose=0)["logits"]
    # The backend computes in bfloat16 where the CPU can.
    np.testing.assert_allclose(np.load(files[2]), expected, atol=0.02)
