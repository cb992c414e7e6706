"""Cost of watching for what is not finite: a step with and without it.

    python -m benchmarks.guard [configs/bert_mini.json [B S P]]

With it, the update keeps the old numbers where the loss or the gradient is
not finite, and every step's losses are looked at for spikes. Both run in
turns, A B A B; the ratio is the median over pairs.
"""

import statistics
import time

import tensorflow as tf

from benchmarks import pretraining_step
from training.guard import Guard


def guarded(training, data):
    """A function that takes a step as the training loop does."""
    guard = Guard(training)

    def run():
        step = training.optimizer.step
        rows = training.train(data, tf.constant(1)).numpy()
        guard.check(step, rows, str)

    return run


def bare(training, data):
    """A function that takes a step that learns from anything."""
    update = training.optimizer.update
    training.optimizer.update = lambda *arguments: update(*arguments[:3])
    return lambda: training.train(data, tf.constant(1)).numpy()


def measure(config, rows, length, places, runs=31) -> dict:
    """Medians over alternating runs, after two of each to warm up."""
    sides = [
        make(*pretraining_step.make_steps(config, rows, length, places))
        for make in (guarded, bare)
    ]
    times = [[], []]
    for _ in range(runs + 2):
        for run, taken in zip(sides, times):
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
    with_it, without = (taken[2:] for taken in times)
    ratios = sorted(a / b for a, b in zip(with_it, without))
    return {
        "what": f"guarded step beside a bare one, B={rows} S={length} "
        f"P={places}",
        "seconds": round(statistics.median(with_it), 4),
        "bare_seconds": round(statistics.median(without), 4),
        "ratio": round(statistics.median(ratios), 4),
        "quartiles": [round(ratios[len(ratios) * i // 4], 4) for i in (1, 3)],
        "tensorflow": tf.__version__,
    }


if __name__ == "__main__":
    pretraining_step.tell(measure, "configs/bert_mini.json")
