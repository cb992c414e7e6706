"""Runs the Trainer of transformers on the examples of our runs."""

import json
import os
import subprocess
import tempfile
import time

import numpy as np

from benchmarks import by_seed
from bert.data import feature_names

_SCRIPT = os.path.join(
    os.path.dirname(__file__), "peers", "huggingface_finetuning.py"
)


def write_examples(
    path: str, examples: list[dict], names: dict[str, str]
) -> None:
    """Writes examples for the script of the peer.

    Args:
        path: path of an `.npz` file.
        examples: as in `data.records.examples`.
        names: our feature name of a label -> the peer's.
    """
    ids = [x[feature_names.INPUT_IDS] for x in examples]
    np.savez(
        path,
        lengths=[len(x) for x in ids],
        input_ids=np.concatenate(ids),
        segment_ids=np.concatenate(
            [x[feature_names.SEGMENT_IDS] for x in examples]
        ),
        **{
            theirs: np.array([x[ours][0] for x in examples])
            for ours, theirs in names.items()
        },
    )


def run(python: str, **settings) -> dict:
    """Runs the peer in its own process.

    Args:
        python: Python of the environment of the peer.
        settings: see `benchmarks/peers/huggingface_finetuning.py`; the
            default is an epoch of batches of 32, in float32.

    Returns:
        its output: seconds of training, versions; and `command_seconds`, the
        time of the process.
    """
    settings = {
        "batch_size": 32,
        "learning_rate": 2e-5,
        "epochs": 1,
        "warmup_proportion": 0.0,
        "weight_decay": 0.01,
        "seed": 1,
        "num_labels": None,
        "bf16": False,
        **settings,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "settings.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(settings, file)
        start = time.perf_counter()
        printed = subprocess.run(
            [python, _SCRIPT, path], stdout=subprocess.PIPE, text=True
        )
        elapsed = time.perf_counter() - start
    printed.check_returncode()
    output = json.loads(printed.stdout.splitlines()[-1])
    return {**output, "command_seconds": elapsed}


def logits(
    peer: tuple[str, str],
    examples: list[dict],
    held_out: list[dict],
    names: dict[str, str],
    **settings,
) -> tuple[dict[str, float], np.ndarray]:
    """Trains the peer as `by_seed.train` trains ours, and predicts.

    Args:
        peer: Python of the peer and folder of its weights.
        examples: examples to train on.
        held_out: examples to predict.
        names: our feature name of a label -> the peer's.
        settings: further settings, see `run`, or others than ours.

    Returns:
        `seconds` of training and `command_seconds` of the process, and the
        logits of the held-out examples.
    """
    settings = {
        "batch_size": by_seed.BATCH_SIZE,
        "learning_rate": by_seed.RATE,
        "warmup_proportion": 0.1,
        **settings,
    }
    with tempfile.TemporaryDirectory() as folder:
        paths = {
            name: os.path.join(folder, f"{name}.npz")
            for name in ("examples", "held_out")
        }
        write_examples(paths["examples"], examples, names)
        write_examples(paths["held_out"], held_out, {})
        answers = os.path.join(folder, "logits.npy")
        printed = run(
            peer[0],
            folder=peer[1],
            logits=answers,
            **paths,
            **settings,
        )
        times = {x: printed[x] for x in ("seconds", "command_seconds")}
        return times, np.load(answers)
