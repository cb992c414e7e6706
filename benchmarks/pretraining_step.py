"""Speed of a pre-training step beside that of a bare matrix product.

    python -m benchmarks.pretraining_step [bert/configs/bert_mini.json [B S P]]

Both run in turns in one process, in float32 and in bfloat16; shares are
computed from medians. The nominal share also counts the part of the last layer
that is not computed, the executed share does not (`benchmarks.flops`).
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
from benchmarks.peers.batches import training_batch
from bert.modeling import fused_ops, losses, networks, precision
from bert.modeling.config import BertConfig
from bert.training import distribution, train_step
from bert.training.objective import Objective
from bert.training.optimization import AdamWeightDecay

MATMUL_SIZE = 2048
KINDS = ("float32", "bfloat16")


def make_training(
    config: BertConfig,
    remat: bool = False,
    use_xla: bool = False,
    packed: bool = False,
    accumulation_steps: int = 1,
    deterministic: bool = False,
) -> train_step.TrainStep:
    """Creates training steps on one device, the first GPU if there is one.

    Args:
        config: sizes of the network.
        remat, use_xla: flags of run_pretraining.py.
        packed: rows hold several sequences.
        accumulation_steps: micro-batches of a batch.
        deterministic: each run gives the same bits.
    """
    model = networks.build_pretraining_model(config, packed=packed)
    optimizer = AdamWeightDecay(1e-4)
    optimizer.build(model.trainable_variables)
    return train_step.TrainStep(
        model,
        Objective(losses.PRETRAINING, None),
        optimizer,
        distribution.make_strategy("one_device"),
        1,
        fused_ops.step_scope(config, remat, use_xla, deterministic),
        losses.batch_tokens,
        use_xla,
        accumulation_steps,
    )


def make_steps(
    config: BertConfig, batch_size: int, length: int, masks: int, **options
) -> tuple[train_step.TrainStep, Iterator]:
    """Creates training steps, and an iterator over a random batch.

    Args:
        config: sizes of the network.
        batch_size, length, masks: B, S and P.
        options: of `make_training`.
    """
    batch = training_batch(config.vocab_size, batch_size, length, masks)
    batch["masked_lm_weights"] = np.ones((batch_size, masks), "f4")
    batch["is_real_example"] = np.ones(batch_size, "f4")
    data = iter(tf.data.Dataset.from_tensors(batch).repeat())
    return make_training(config, **options), data


def gpu_peak() -> int:
    """Most bytes that TensorFlow held on the first GPU; 0 without one."""
    if not tf.config.list_logical_devices("GPU"):
        return 0
    return tf.config.experimental.get_memory_info("GPU:0")["peak"]


def measure(
    config, batch_size, length, masks, size=MATMUL_SIZE, runs=7
) -> dict:
    """Measures seconds and shares in each precision, with both FLOPs."""
    sizes = (config, batch_size, length, masks)
    work = {
        "nominal": flops.nominal(*sizes),
        "executed": flops.executed(*sizes),
    }
    return {
        "what": f"pre-training step, B={batch_size} S={length} P={masks}",
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


def print_figures(measure: Callable[..., dict], default: str) -> None:
    """Prints the figures for the command line as one JSON line.

    Args:
        measure: (config, B, S, P) -> figures.
        default: default path of the config.
    """
    path = sys.argv[1] if len(sys.argv) > 1 else default
    sizes = [int(word) for word in sys.argv[2:5]] or [32, 128, 20]
    config = BertConfig.from_json_file(path)
    print(json.dumps({"config": path, **measure(config, *sizes)}))


if __name__ == "__main__":
    print_figures(measure, "bert/configs/bert_mini.json")
