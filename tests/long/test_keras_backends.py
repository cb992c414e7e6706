"""The network on Keras' other backends; only in `make test-long`."""

import os
import pathlib
import subprocess

import keras
import numpy as np
import pytest

from bert.modeling import networks, task_heads
from tests.helpers import keras_backends, small

ROOT = pathlib.Path(__file__).parents[2]
PYTHON = ROOT / ".venv-peers" / "keras_backends" / "bin" / "python"
C = 3
pytestmark = pytest.mark.long


def classifier(rate):
    """A classifier with random weights."""
    model = networks.build(
        small.config(
            hidden_dropout_prob=rate, attention_probs_dropout_prob=rate
        ),
        task_heads.CLASSIFIER,
        C,
    )
    # The rate below the head is fixed.
    model.get_layer("dropout").rate = rate
    rng = np.random.default_rng(3)
    for variable in model.variables:
        variable.assign(rng.normal(0.1, 0.3, variable.shape))
    return model


def run(backend, model, folder):
    """Results of a backend for a model."""
    batch = small.batch(rows=7)
    inputs = {name: np.int32(batch[name]) for name in model.input}
    labels = np.arange(7, dtype=np.int32) % C
    np.savez(folder / "inputs.npz", **inputs, labels=labels)
    model.save(folder / "model.keras")
    paths = [folder / x for x in ("model.keras", "inputs.npz", "out.npz")]
    if backend == "tensorflow":
        keras_backends.results(*paths)
    else:
        subprocess.run(
            [PYTHON, "-m", "tests.helpers.keras_backends", *paths],
            cwd=ROOT,
            env={**os.environ, "KERAS_BACKEND": backend},
            check=True,
        )
    return dict(np.load(folder / "out.npz"))


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_another_backend_gives_the_same_outputs_and_steps(
    backend, tmp_path, capsys
):
    model = classifier(0.0)
    expected = run("tensorflow", model, tmp_path)
    found = run(backend, model, tmp_path)
    assert found.keys() == expected.keys()
    apart = {name: np.abs(found[name] - expected[name]).max() for name in found}
    with capsys.disabled():
        weights = max(x for name, x in apart.items() if "weight" in name)
        print(
            f"\n{backend}, Keras {keras.__version__}: logits "
            f"{apart['logits']:.1e}, losses of {keras_backends.STEPS} steps "
            f"{apart['losses']:.1e}, weights {weights:.1e}"
        )
    assert max(apart.values()) < 1e-5
    assert expected["losses"][-1] < expected["losses"][0]
