r"""Times pre-training steps on the first GPU of this machine, else its CPU.

    python -m benchmarks.gpu_steps \
        [CONFIG.json B S P [PRECISION [remat] [deterministic] [parts=N]]]

The same steps as `benchmarks.ahead_of_time`, each in a process of its own:
the median time of a step, the rate of its matrix products beside the peak
rate of an H100's data sheet and beside that of a large product on this GPU,
and the highest memory. Prints one JSON line for each step.
"""

import json
import statistics
import subprocess
import sys
import time

import keras
import tensorflow as tf

from benchmarks import ahead_of_time, flops, pretraining_step
from bert.modeling import precision as precisions
from bert.modeling.config import BertConfig
from bert.training import distribution

CALL = 10  # steps of a call of the compiled program
MATMUL_SIZE = 8192


def measure(path: str, sizes, precision: str, words, runs: int = 7) -> dict:
    """Figures of a step, medians over `runs` calls of `CALL` steps.

    Args:
        path: config of the network.
        sizes: B, S and P.
        precision: precision of the network.
        words: options of `ahead_of_time.step_options`.
        runs: counted calls, after two to compile and warm up.
    """
    strategy = distribution.make_strategy()
    precision = precisions.choose(precision, strategy)
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
    loss = training.train(data, count).numpy()[0, 0]
    first = time.perf_counter() - start
    seconds = _median(lambda: training.train(data, count).numpy(), runs) / CALL
    executed = flops.executed(config, *sizes)
    peak = ahead_of_time.DEVICES["h100"][2]
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
        "first_loss_sum": float(loss),
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
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
    for path, sizes, precision, words in ahead_of_time.chosen_steps(given):
        if given:
            figures = measure(path, sizes, precision, words)
            print(json.dumps(figures), flush=True)
            return
        step = [path, *map(str, sizes), precision, *words]
        command = [sys.executable, "-m", "benchmarks.gpu_steps", *step]
        subprocess.run(command)


if __name__ == "__main__":
    main()
