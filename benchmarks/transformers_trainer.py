"""Asks transformers' Trainer to do the work that ours did."""

import json
import os
import subprocess
import tempfile

import numpy as np

from benchmarks import by_seed
from data import features

_SCRIPT = os.path.join(
    os.path.dirname(__file__), "peers", "huggingface_finetuning.py"
)


def write_rows(path: str, rows: list[dict], names: dict[str, str]) -> None:
    """Writes rows as the peer's script reads them.

    Args:
        path: an `.npz` file.
        rows: as `data.records.example_files` has them.
        names: our feature of a label -> the peer's.
    """
    ids = [row[features.INPUT_IDS] for row in rows]
    np.savez(
        path,
        lengths=[len(x) for x in ids],
        input_ids=np.concatenate(ids),
        segment_ids=np.concatenate([row[features.SEGMENT_IDS] for row in rows]),
        **{
            theirs: np.array([row[ours][0] for row in rows])
            for ours, theirs in names.items()
        },
    )


def run(python: str, **settings) -> dict:
    """Runs the peer in a process of its own.

    Args:
        python: of the peer's environment.
        settings: see `benchmarks/peers/huggingface_finetuning.py`; left out,
            an epoch of 32 rows a batch, in float32.

    Returns:
        what it printed: seconds of training, versions.
    """
    settings = {
        "batch_size": 32,
        "learning_rate": 2e-5,
        "epochs": 1,
        "warmup_proportion": 0.0,
        "seed": 1,
        "num_labels": None,
        "bf16": False,
        **settings,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "settings.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(settings, file)
        printed = subprocess.run(
            [python, _SCRIPT, path], stdout=subprocess.PIPE, text=True
        )
    printed.check_returncode()
    return json.loads(printed.stdout.splitlines()[-1])


def logits(
    peer: tuple[str, str],
    rows: list[dict],
    held_out: list[dict],
    names: dict[str, str],
    **settings,
) -> tuple[float, np.ndarray]:
    """Trains the peer as `by_seed.train` trains ours, and lets it answer.

    Args:
        peer: its Python, and the folder of its weights.
        rows: are trained on.
        held_out: are answered.
        names: our feature of a label -> the peer's.
        settings: more, see `run`.

    Returns:
        seconds of training, and the logits of held-out rows.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = {
            name: os.path.join(folder, f"{name}.npz")
            for name in ("rows", "held_out")
        }
        write_rows(paths["rows"], rows, names)
        write_rows(paths["held_out"], held_out, {})
        answers = os.path.join(folder, "logits.npy")
        printed = run(
            peer[0],
            folder=peer[1],
            logits=answers,
            batch_size=by_seed.BATCH_SIZE,
            learning_rate=by_seed.RATE,
            warmup_proportion=0.1,
            **paths,
            **settings,
        )
        return printed["seconds"], np.load(answers)
