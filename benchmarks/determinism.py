"""Cost of deterministic operations in a pre-training step.

    python -m benchmarks.determinism [bert/configs/bert_mini.json [B S P]]

The same step, with and without them, in turns in one process.
"""

import statistics
import time

import keras
import tensorflow as tf
from tensorflow.python.framework import config as framework

from benchmarks import pretraining_step
from bert.modeling.config import BertConfig


def measure(
    config: BertConfig, batch_size: int, length: int, masks: int, runs: int = 31
) -> dict:
    """Medians over alternating runs, after two of each to warm up."""
    sides = {}
    for name in ("deterministic", "default"):
        _select(name)
        training, data = pretraining_step.make_steps(
            config, batch_size, length, masks
        )
        sides[name] = training, data, []
    for _ in range(runs + 2):
        for name, (training, data, taken) in sides.items():
            _select(name)
            start = time.perf_counter()
            training.train(data, tf.constant(1)).numpy()
            taken.append(time.perf_counter() - start)
    times = {name: taken[2:] for name, (*_, taken) in sides.items()}
    ratios = sorted(a / b for a, b in zip(*times.values(), strict=True))
    framework.disable_op_determinism()
    return {
        "what": f"deterministic step beside the default, B={batch_size} "
        f"S={length} P={masks}",
        "seconds": {
            k: round(statistics.median(v), 4) for k, v in times.items()
        },
        "ratio": round(statistics.median(ratios), 4),
        "quartiles": [round(ratios[len(ratios) * i // 4], 4) for i in (1, 3)],
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
    }


def _select(name: str) -> None:
    if name == "deterministic":
        tf.config.experimental.enable_op_determinism()
    else:
        framework.disable_op_determinism()


if __name__ == "__main__":
    pretraining_step.print_figures(measure, "bert/configs/bert_mini.json")
