"""Runs a saved classifier on another backend of Keras.

    python -m tests.helpers.keras_backends MODEL INPUTS OUTPUTS

MODEL is a `.keras` file, INPUTS an `.npz` file of its inputs and `labels`,
int32 [B]; OUTPUTS gets logits, losses of training steps, and the weights
after them. KERAS_BACKEND chooses the backend. Runs in the environment that
`make peers` installs, which has no TensorFlow.
"""

import importlib.util
import sys

import keras
import numpy as np

from bert.modeling import networks  # noqa: F401 registers the layers

STEPS = 3


def results(model: str, inputs: str, outputs: str) -> None:
    """Writes one `.npz` file."""
    with np.load(inputs) as file:
        batch = dict(file)
    labels = {"logits": batch.pop("labels")}
    found = {}
    loaded = keras.saving.load_model(model)
    logits = loaded(batch)["logits"]
    found["logits"] = keras.ops.convert_to_numpy(logits)
    found["predicted"] = loaded.predict(
        {name: x.astype(np.int64) for name, x in batch.items()}, verbose=0
    )["logits"]
    loaded.compile(
        keras.optimizers.SGD(0.01),
        {
            "logits": keras.losses.SparseCategoricalCrossentropy(
                from_logits=True
            )
        },
    )
    found["losses"] = loaded.fit(
        batch, labels, len(labels["logits"]), epochs=STEPS, verbose=0
    ).history["loss"]
    weights = [keras.ops.convert_to_numpy(x) for x in loaded.weights]
    found |= {f"weight_{i}": x for i, x in enumerate(weights)}
    np.savez(outputs, **found)


if __name__ == "__main__":
    assert importlib.util.find_spec("tensorflow") is None
    results(*sys.argv[1:])
