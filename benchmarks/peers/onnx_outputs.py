"""Outputs of a network that ONNX Runtime loads, for comparison with ours.

    python onnx_outputs.py MODEL.onnx INPUTS.npz OUT.npz

Runs in an environment that `make peers` installs, which has no TensorFlow.
"""

import importlib.util
import sys

import numpy as np
import onnxruntime


def main(model: str, inputs: str, path: str) -> None:
    """Writes the outputs of the inputs in a file."""
    session = onnxruntime.InferenceSession(
        model, providers=["CPUExecutionProvider"]
    )
    with np.load(inputs) as file:
        wanted = [x.name for x in session.get_inputs()]
        values = session.run(None, {name: file[name] for name in wanted})
    names = [x.name for x in session.get_outputs()]
    np.savez(path, **dict(zip(names, values, strict=True)))


if __name__ == "__main__":
    assert importlib.util.find_spec("tensorflow") is None
    main(*sys.argv[1:])
