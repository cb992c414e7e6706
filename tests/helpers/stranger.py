"""Runs exports in a process that has none of the project's code."""

import functools
import json
import os
import pathlib
import subprocess
import sys

import numpy as np

from bert.data import feature_names
from bert.inference import predictor
from bert.modeling.task_heads import CHOICES

PROGRAM = """
import json, sys
import tensorflow as tf
import tensorflow_text

def plain(value):
    if isinstance(value, list):
        return [plain(x) for x in value]
    return value.decode() if isinstance(value, bytes) else value

for line in sys.stdin:
    export, inputs = json.loads(line)
    inputs = {k: tf.constant(x) for k, x in inputs.items()}
    found = {}
    for name, call in tf.saved_model.load(export).signatures.items():
        if call.structured_input_signature[1].keys() == inputs.keys():
            answer = call(**inputs).items()
            found[name] = {k: plain(x.numpy().tolist()) for k, x in answer}
    ours = {"bert", "common", "data", "modeling", "serving", "tasks"}
    assert not ours & {name.split(".")[0] for name in sys.modules}
    print(json.dumps(found), flush=True)
"""


@functools.cache
def _process() -> subprocess.Popen:
    """The process, which ends with this one's standard input for it."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
        env={**os.environ, "PYTHONPATH": ""},
    )


def ask(export: str | pathlib.Path, **inputs: list) -> dict[str, dict]:
    """Calls the signatures with these inputs, with TensorFlow alone.

    Args:
        export: folder of the SavedModel.
        inputs: strings, or lists of strings.

    Returns:
        name of each such signature -> name -> output, as lists.
    """
    process = _process()
    process.stdin.write(json.dumps([str(export), inputs]) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def predict(export: str | pathlib.Path, examples: list[dict]) -> list[dict]:
    """Predicts with the logits that TensorFlow alone computes.

    Args:
        export: folder of an export whose SavedModel ends at the logits.
        examples: as for a `Predictor`.
    """
    task = predictor.task_of(predictor.open_model(str(export)))
    encoded, outputs = task.encode(examples), []
    for example in encoded:
        if not example.sequences:
            outputs.append([])
            continue
        size = max(len(ids) for ids, _ in example.sequences)
        inputs = {
            feature_names.INPUT_IDS: [ids for ids, _ in example.sequences],
            feature_names.SEGMENT_IDS: [x for _, x in example.sequences],
            feature_names.INPUT_MASK: [
                [1] * len(x) for x, _ in example.sequences
            ],
        }
        for name, rows in inputs.items():
            inputs[name] = [
                [*map(int, x), *[0] * (size - len(x))] for x in rows
            ]
        if task.head == CHOICES:  # each is the only one of its context
            inputs = {name: [[x] for x in v] for name, v in inputs.items()}
        (found,) = ask(export, **inputs).values()
        if "logits" in found:
            outputs.append([*np.array(found["logits"])])
        else:
            pair = found["start_logits"], found["end_logits"]
            outputs.append([*np.stack(pair, -1)])
    return task.decode(encoded, [*map(task.combine, encoded, outputs)])
