"""Time of a pre-training step beside a bare matrix product.

    python -m benchmarks.pretraining_step [configs/bert_mini.json [B S P]]

Both run in turns in one process, in float32 and in bfloat16; shares are those
of medians. The executed share is what is left to win; the nominal one also
counts what the last layer does not compute (`benchmarks.flops`).
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator

import keras
import numpy as np
import tensorflow as tf

from benchmarks import flops
from benchmarks.peers.rows import training_rows
from modeling import fused_ops, losses, models, precision
from modeling.config import BertConfig
from training import steps
from training.optimization import AdamWeightDecay

MATMUL_SIZE = 2048
KINDS = ("float32", "bfloat16")


def make_training(
    config: BertConfig,
    fused: bool = True,
    remat: bool = False,
    use_xla: bool = False,
    packed: bool = False,
) -> steps.Steps:
    """Training steps on one device.

    Args:
        config: sizes.
        fused, remat: see `fused_ops.step_scope`.
        use_xla: flag of run_pretraining.py.
        packed: rows hold several sequences.
    """
    model = models.build_pretraining_model(config, packed=packed)
    optimizer = AdamWeightDecay(1e-4)
    optimizer.build(model.trainable_variables)
    return steps.Steps(
        steps.Task(
            model,
            losses.OBJECTIVES,
            losses.pretraining_weights,
            losses.pretraining_sums,
            fused_ops.step_scope(config, fused and not use_xla, remat),
        ),
        optimizer,
        tf.distribute.OneDeviceStrategy("CPU:0"),
        1,
        use_xla,
    )


def make_steps(
    config: BertConfig, rows: int, length: int, places: int, **ways
) -> tuple[steps.Steps, Iterator]:
    """Training steps, and an iterator over random rows.

    Args:
        config: sizes.
        rows, length, places: B, S and P.
        ways: of `make_training`.
    """
    batch = training_rows(config.vocab_size, rows, length, places)
    batch["masked_lm_weights"] = np.ones((rows, places), "f4")
    batch["is_real_example"] = np.ones(rows, "f4")
    data = iter(tf.data.Dataset.from_tensors(batch).repeat())
    return make_training(config, **ways), data


def measure(config, rows, length, places, size=MATMUL_SIZE, runs=7) -> dict:
    """Seconds and shares in each precision, and both counts of FLOPs."""
    sizes = (config, rows, length, places)
    work = {
        "nominal": flops.nominal(*sizes),
        "executed": flops.executed(*sizes),
    }
    return {
        "what": f"pre-training step, B={rows} S={length} P={places}",
        **{f"{name}_gflop": round(x / 1e9, 1) for name, x in work.items()},
        **{kind: _measure_in(kind, sizes, work, size, runs) for kind in KINDS},
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
    }


def _measure_in(kind: str, sizes: tuple, work: dict, size, runs) -> dict:
    """Medians over alternating runs, after two of each to warm up."""
    with precision.computing_in(kind):
        training, data = make_steps(*sizes)
    step = lambda: training.train(data, tf.constant(1))  # noqa: E731
    matrix = tf.random.stateless_normal([size, size], [1, 2])
    matrix = tf.cast(matrix, kind)
    product = tf.function(lambda: tf.matmul(matrix, matrix))
    times = {"step": [], "matmul": []}
    for _ in range(runs + 2):
        for name, run in (("step", step), ("matmul", product)):
            start = time.perf_counter()
            run().numpy()
            times[name].append(time.perf_counter() - start)
    median = {k: statistics.median(v[2:]) for k, v in times.items()}
    matmul_rate = 2 * size**3 / median["matmul"]
    found = {
        "seconds": round(median["step"], 4),
        "seconds_min_max": [round(f(times["step"][2:]), 4) for f in (min, max)],
        "matmul_gflop_per_second": round(matmul_rate / 1e9, 1),
    }
    for name, count in work.items():
        rate = count / median["step"]
        found[f"{name}_gflop_per_second"] = round(rate / 1e9, 1)
        found[f"{name}_share"] = round(rate / matmul_rate, 3)
    return found


def tell(measure: Callable[..., dict], default: str) -> None:
    """Prints one JSON line of what the command line asks for.

    Args:
        measure: (config, B, S, P) -> figures.
        default: config file, if none is named.
    """
    path = sys.argv[1] if len(sys.argv) > 1 else default
    sizes = [int(word) for word in sys.argv[2:5]] or [32, 128, 20]
    config = BertConfig.from_json_file(path)
    print(json.dumps({"config": path, **measure(config, *sizes)}))


if __name__ == "__main__":
    tell(measure, "configs/bert_mini.json")
