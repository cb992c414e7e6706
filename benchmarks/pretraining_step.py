"""Time of a pre-training step beside a bare matrix product.

    python -m benchmarks.pretraining_step [configs/bert_mini.json [B S P]]

Both run in turns in one process; the share is that of medians. FLOPs are
those of the network's matrix products, forward and backward, without padding
or recomputation.
"""

import json
import statistics
import sys
import time

import keras
import numpy as np
import tensorflow as tf

from modeling import counts, dropout, models, pretraining_losses
from modeling.config import BertConfig
from training import steps
from training.optimization import AdamWeightDecay

MATMUL_SIZE = 2048


def make_step(config: BertConfig, rows: int, length: int, places: int):
    """A function that takes one training step on random rows."""
    model = models.build_pretraining_model(config)
    optimizer = AdamWeightDecay(1e-4)
    optimizer.build(model.trainable_variables)
    training = steps.Steps(
        steps.Task(
            model,
            pretraining_losses.OBJECTIVES,
            pretraining_losses.pretraining_weights,
            pretraining_losses.pretraining_sums,
            dropout.dropout_seed,
        ),
        optimizer,
        tf.distribute.OneDeviceStrategy("CPU:0"),
        seed=1,
    )
    rng = np.random.default_rng(1)
    shapes = {"next_sentence_labels": (rows, 1), "is_real_example": (rows,)}
    batch = {
        name: rng.integers(0, 2, shapes.get(name, (rows, length)), "i4")
        for name in (*model.input, *shapes)
    }
    batch["input_mask"][:] = 1
    batch["is_real_example"] = np.ones(rows, "f4")
    batch["input_ids"] = rng.integers(
        0, config.vocab_size, (rows, length), "i4"
    )
    batch["masked_lm_positions"] = rng.integers(0, length, (rows, places), "i4")
    batch["masked_lm_ids"] = rng.integers(
        0, config.vocab_size, (rows, places), "i4"
    )
    batch["masked_lm_weights"] = np.ones((rows, places), "f4")
    data = iter(tf.data.Dataset.from_tensors(batch).repeat())
    return lambda: training.train(data, tf.constant(1)).numpy()


def measure(config, rows, length, places, size=MATMUL_SIZE, runs=7) -> dict:
    """Medians over alternating runs, after two of each to warm up."""
    step = make_step(config, rows, length, places)
    matrix = tf.random.stateless_normal([size, size], [1, 2])
    product = tf.function(lambda: tf.matmul(matrix, matrix))
    times = {"step": [], "matmul": []}
    for _ in range(runs + 2):
        for name, run in (("step", step), ("matmul", product)):
            start = time.perf_counter()
            np.asarray(run())
            times[name].append(time.perf_counter() - start)
    median = {k: statistics.median(v[2:]) for k, v in times.items()}
    flops = counts.pretraining_flops(config, rows, length, places)
    rate = flops / median["step"]
    matmul_rate = 2 * size**3 / median["matmul"]
    return {
        "what": f"pre-training step, B={rows} S={length} P={places}",
        "seconds": round(median["step"], 4),
        "seconds_min_max": [round(f(times["step"][2:]), 4) for f in (min, max)],
        "gflop_per_second": round(rate / 1e9, 1),
        "matmul_gflop_per_second": round(matmul_rate / 1e9, 1),
        "share_of_matmul": round(rate / matmul_rate, 3),
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
    }


def main() -> None:
    """Prints one JSON line."""
    path = sys.argv[1] if len(sys.argv) > 1 else "configs/bert_mini.json"
    sizes = [int(word) for word in sys.argv[2:5]] or [32, 128, 20]
    config = BertConfig.from_json_file(path)
    print(json.dumps({"config": path, **measure(config, *sizes)}))


if __name__ == "__main__":
    main()
