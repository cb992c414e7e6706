"""Asks an export in a process that knows nothing of this project."""

import json
import os
import pathlib
import subprocess
import sys

PROGRAM = """
import json, sys
import tensorflow as tf
import tensorflow_text

def plain(value):
    if isinstance(value, list):
        return [plain(x) for x in value]
    return value.decode() if isinstance(value, bytes) else value

inputs = {k: tf.constant(x) for k, x in json.load(sys.stdin).items()}
found = {}
for name, signature in tf.saved_model.load(sys.argv[1]).signatures.items():
    if signature.structured_input_signature[1].keys() == inputs.keys():
        answer = signature(**inputs)
        found[name] = {k: plain(x.numpy().tolist()) for k, x in answer.items()}
ours = {"common", "data", "modeling", "serving", "tasks"}
assert not ours & {name.split(".")[0] for name in sys.modules}
json.dump(found, sys.stdout)
"""


def ask(export: str | pathlib.Path, **inputs: list) -> dict[str, dict]:
    """Calls the signatures with these inputs, with TensorFlow alone.

    Args:
        export: folder of the SavedModel.
        inputs: strings, or lists of strings.

    Returns:
        name of each such signature -> name -> output, as lists.
    """
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(export)],
        input=json.dumps(inputs),
        capture_output=True,
        text=True,
        cwd="/",
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
