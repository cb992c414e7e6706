"""Cost of the guard, of checkpoints, and of the check of records.

    python -m benchmarks.guard [bert/configs/bert_mini.json [B S P]]

A guarded step keeps the old weights if the loss or the gradient is not finite,
and checks the losses for spikes. A bare step clips the gradient in the same
way, but always updates. Both run in turns, A B A B; the ratio is the median
over pairs. Checkpoints are written as in a run: synced, hashed, named last. The
cost is given as a share of the 1,000 steps between two checkpoints. Records are
compared with their manifest once, which costs a share of the first epoch.
"""

import collections
import os
import statistics
import tempfile
import time

import tensorflow as tf

from benchmarks import pretraining_step
from bert.common.storage import hash_file
from bert.data.records import shard_check
from bert.modeling import checkpoints, networks
from bert.modeling.config import BertConfig
from bert.training import finite_check, optimization
from bert.training.saver import Saver


def guarded(training, data):
    """Returns a function that takes a step as the training loop does."""
    losses = collections.deque(maxlen=finite_check.WINDOW)

    def run():
        step = training.optimizer.step
        sums = training.train(data, tf.constant(1)).numpy()
        finite_check.check(training, losses, step, sums, str)

    return run


def bare(training, data):
    """Returns a function that takes a step without the guard."""
    update = training.optimizer.update

    def learn(gradients, variables, rate, learn, factor, skipped):
        update(gradients, variables, rate, factor=factor, skipped=skipped)

    training.optimizer.update = learn
    return lambda: training.train(data, tf.constant(1)).numpy()


def save_seconds(config: BertConfig) -> float:
    """Median time of saving weights and moments, over three checkpoints."""
    network = networks.build_pretraining_model(config)
    optimizer = optimization.AdamWeightDecay(1e-4)
    optimizer.build(network.trainable_variables)
    named = checkpoints.model_variables(network)
    values = {**named, **optimizer.named_slots(named)}
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        saver = Saver(folder, keep_max=2)
        for step in range(3):
            start = time.perf_counter()
            saver.save(step, values, {})
            seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def check_seconds(length: int, masks: int, count: int = 10_000) -> float:
    """Time per record of comparing records of full size with a manifest."""
    size = 8 * (3 * length + 3 * masks)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "shard.tfrecord")
        with tf.io.TFRecordWriter(path) as writer:
            for _ in range(count):
                writer.write(os.urandom(size))
        entry = shard_check.ShardEntry(
            count, os.path.getsize(path), hash_file(path)
        )
        start = time.perf_counter()
        assert shard_check.check_shard(path, entry) is None
        return (time.perf_counter() - start) / count


def measure(config, batch_size, length, masks, runs=31) -> dict:
    """Medians over alternating runs, after two of each to warm up."""
    sides = [
        make(*pretraining_step.make_steps(config, batch_size, length, masks))
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
    step = statistics.median(with_it)
    saving = save_seconds(config)
    return {
        "what": f"guarded step beside a bare one, B={batch_size} "
        f"S={length} P={masks}",
        "seconds": round(step, 4),
        "bare_seconds": round(statistics.median(without), 4),
        "ratio": round(statistics.median(ratios), 4),
        "quartiles": [round(ratios[len(ratios) * i // 4], 4) for i in (1, 3)],
        "save_seconds": round(saving, 3),
        "saving_of_1000_steps": round(saving / (1000 * step), 5),
        "checking_of_an_epoch": round(
            check_seconds(length, masks) / (step / batch_size), 6
        ),
        "tensorflow": tf.__version__,
    }


if __name__ == "__main__":
    pretraining_step.print_figures(measure, "bert/configs/bert_mini.json")
