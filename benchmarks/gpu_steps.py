r"""Times pre-training steps on the first GPU of this machine, else its CPU.

    python -m benchmarks.gpu_steps \
        [CONFIG.json B S P [PRECISION [remat] [deterministic] [parts=N]]]

The median time of a step, the rate of its matrix products beside the peak
rate of an H100's data sheet and beside that of a large product on this GPU,
and the highest memory. With the word `compared`, also how far the losses and
the gradient are from those of a step that is not compiled. With `resumed`,
instead, how many bytes of a checkpoint differ after run_pretraining.py has
gone on in another process. Without a step, those of `PLAN`, each in a process
of its own, within `MINUTES`. Prints one JSON line for each step.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import keras
import numpy as np
import tensorflow as tf

from benchmarks import (
    ahead_of_time,
    flops,
    pretraining_step,
    records_training,
)
from benchmarks.peers.batches import training_batch
from bert.data.records import encoding, frames
from bert.modeling import precision as precisions
from bert.modeling.config import BertConfig
from bert.training import distribution

CALL = 10  # steps of a call of the compiled program
MATMUL_SIZE = 8192
MINUTES = 8
# What is asked first of a GPU: are the numbers right, also in a run that goes
# on in another process; how fast are large batches; what do graphs of CUDA
# save, and what do deterministic bits cost. An estimate from the times measured
# on an H100: 80, 40, 150, 75, 70 and 65 seconds, most of them to compile.
_BASE, _LARGE = "bert/configs/bert_base.json", "bert/configs/bert_large.json"
PLAN = [
    (_BASE, 32, 128, 20, ["compared"]),
    ("bert/configs/bert_tiny.json", 32, 128, 20, ["resumed"]),
    (_LARGE, 64, 512, 77, []),
    (_BASE, 256, 128, 20, []),
    (_BASE, 32, 128, 20, ["graphs"]),
    (_BASE, 32, 128, 20, ["deterministic"]),
]
_GRAPHS = (
    "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL"
    " --xla_gpu_graph_min_graph_size=1"
)


def measure(path: str, sizes, precision: str, words, runs: int = 7) -> dict:
    """Figures of a step, medians over `runs` calls of `CALL` steps.

    Args:
        path: config of the network.
        sizes: B, S and P.
        precision: precision of the network.
        words: options of `ahead_of_time.step_options`, `compared`, `graphs`.
        runs: counted calls, after two to compile and warm up.
    """
    strategy = distribution.make_strategy()
    precision = distribution.choose_precision(strategy, precision)
    options = ahead_of_time.step_options(words)
    distribution.set_determinism(strategy, options["deterministic"])
    config = BertConfig.from_json_file(path)
    with precisions.computing_in(precision):
        training, data = pretraining_step.make_steps(
            config,
            *sizes,
            use_xla=distribution.use_xla(strategy, None),
            **options,
        )
    count = tf.constant(CALL)
    start = time.perf_counter()
    rows = training.train(data, count).numpy()
    first = time.perf_counter() - start
    seconds = _median(lambda: training.train(data, count).numpy(), runs) / CALL
    executed = flops.executed(config, *sizes)
    peak = ahead_of_time.DEVICES["h100"][2]
    compared = "compared" in words
    product = _product_rate(precision)
    return {
        "what": ahead_of_time.describe(path, sizes, precision, words),
        "device": distribution.describe(strategy),
        "milliseconds": round(1e3 * seconds, 2),
        "examples_per_second": round(sizes[0] / seconds),
        "executed_teraflop_per_second": round(executed / seconds / 1e12, 1),
        "share_of_data_sheet": round(executed / seconds / peak, 3),
        "nominal_share_of_data_sheet": round(
            flops.nominal(config, *sizes) / seconds / peak, 3
        ),
        "product_teraflop_per_second": round(product / 1e12, 1),
        "share_of_product": round(executed / seconds / product, 3),
        "gigabytes": round(pretraining_step.gpu_peak() / 1e9, 2),
        "first_call_seconds": round(first, 1),
        "first_loss_sum": float(rows[0, 0]),
        **(_differences(rows, config, sizes, precision) if compared else {}),
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
    }


def _differences(rows, config: BertConfig, sizes, precision: str) -> dict:
    """Relative differences from the rows of steps that are not compiled."""
    with precisions.computing_in(precision):
        training, data = pretraining_step.make_steps(config, *sizes)
    others = training.train(data, tf.constant(CALL)).numpy()
    losses, norms = (np.abs(rows[:, i] / others[:, i] - 1) for i in (0, -2))
    return {
        "first_loss_off": float(losses[0]),
        "largest_loss_off": float(losses.max()),
        "first_norm_off": float(norms[0]),
    }


def resume(path: str, sizes, precision: str, words) -> dict:
    """Bytes that differ between a run in one process and in two.

    Args:
        path, sizes, precision, words: as for `measure`.
    """
    batch_size, length, masks = sizes
    vocab_size = BertConfig.from_json_file(path).vocab_size
    rows = training_batch(vocab_size, 2 * CALL * batch_size, length, masks)
    rows["masked_lm_weights"] = np.ones_like(rows["masked_lm_ids"], "f4")
    ends = []
    with tempfile.TemporaryDirectory() as folder:
        records = pathlib.Path(folder, "records")
        records.write_bytes(frames.join(encoding.encode_examples(rows)))
        for _ in range(2):  # the second from the checkpoint that is left
            records_training.run_script(
                records_training.ROOT / "run_pretraining.py",
                *("--do_train", "--noreport", f"--precision={precision}"),
                f"--input_file={records}",
                f"--output_dir={folder}/run",
                f"--bert_config_file={path}",
                f"--max_seq_length={length}",
                f"--max_predictions_per_seq={masks}",
                f"--train_batch_size={batch_size}",
                f"--num_train_steps={2 * CALL}",
                f"--save_checkpoints_steps={CALL}",
            )
            for file in pathlib.Path(folder, "run").glob(f"*-{2 * CALL}.*"):
                if ".data" in file.name:
                    ends.append(np.fromfile(file, np.uint8))
                file.unlink()
    return {
        "what": ahead_of_time.describe(path, sizes, precision, words),
        "bytes": ends[0].size,
        "bytes_off": int(np.sum(ends[0] != ends[1])),
    }


def _median(run, runs: int) -> float:
    """Median seconds, after one run to warm up."""
    run()
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def _product_rate(precision: str) -> float:
    """FLOPs a second of a large matrix product, of ten without a pause."""
    size = MATMUL_SIZE
    kind = "bfloat16" if precision == "bfloat16" else "float32"
    matrix = tf.cast(
        tf.random.stateless_normal([size, size], [1, 2]) / size**0.5, kind
    )

    @tf.function
    def products():
        x = matrix
        for _ in range(10):
            x = tf.matmul(x, matrix)
        return tf.reduce_max(x)

    return 10 * 2 * size**3 / _median(lambda: products().numpy(), 5)


def main() -> None:
    """Prints one JSON line for each step."""
    given = sys.argv[1:]
    if given:
        (step,) = ahead_of_time.chosen_steps(given)
        run = resume if "resumed" in step[-1] else measure
        print(json.dumps(run(*step)), flush=True)
        return
    end = time.monotonic() + 60 * MINUTES
    for path, *sizes, words in PLAN:
        step = [path, *map(str, sizes), "bfloat16", *words]
        flags = _GRAPHS if "graphs" in words else ""
        try:
            subprocess.run(
                [sys.executable, "-m", "benchmarks.gpu_steps", *step],
                env={**os.environ, "XLA_FLAGS": flags},
                timeout=max(end - time.monotonic(), 1),
            )
        except subprocess.TimeoutExpired:
            print(json.dumps({"what": " ".join(step), "stopped": MINUTES}))


if __name__ == "__main__":
    main()
