"""Scores of two systems that learn the same, one seed after the other."""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

RATE = 1e-4
BATCH_SIZE = 16


def train(script: str, folder: str, model: str, **flags) -> dict[str, float]:
    """Runs one of our scripts from a checkpoint.

    Args:
        script: its path.
        folder: of the run, which keeps the records.
        model: folder of a checkpoint, bert_config.json and vocab.txt.
        flags: more of them.

    Returns:
        eval_results.txt, and `seconds` of the whole command.
    """
    flags = {
        "vocab_file": f"{model}/vocab.txt",
        "bert_config_file": f"{model}/bert_config.json",
        "init_checkpoint": f"{model}/bert_model.ckpt",
        "output_dir": folder,
        "train_batch_size": BATCH_SIZE,
        "eval_batch_size": BATCH_SIZE,
        "learning_rate": RATE,
        **flags,
    }
    start = time.perf_counter()
    subprocess.run(
        [
            *(sys.executable, script, "--do_train", "--do_eval"),
            *(f"--{name}={value}" for name, value in flags.items()),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    found = {"seconds": time.perf_counter() - start}
    with open(f"{folder}/eval_results.txt", encoding="utf-8") as file:
        for line in file:
            name, value = line.strip().split(" = ")
            found[name] = float(value)
    return found


def compare(
    sides: dict[str, Callable[[int, str], tuple[float, ...]]], seeds: int
) -> dict[str, dict]:
    """Trains each side with each seed.

    Args:
        sides: name -> function of a seed and of a folder that the sides of a
            seed share, which returns seconds and scores.
        seeds: how many.

    Returns:
        side -> scores of each seed, their means, and the median of seconds.
    """
    found = {side: [] for side in sides}
    for seed in range(1, seeds + 1):
        with tempfile.TemporaryDirectory() as folder:
            for side, run in sides.items():
                found[side].append(run(seed, folder))
    return {side: _described(runs) for side, runs in found.items()}


def _described(runs: list[tuple[float, ...]]) -> dict:
    seconds, *scores = zip(*runs)
    return {
        "scores": [[round(x, 4) for x in some] for some in scores],
        "means": [round(statistics.mean(some), 4) for some in scores],
        "seconds": round(statistics.median(seconds), 1),
    }
