"""Estimates memory and time of a training run from a few of its steps."""

import os
import statistics
import time

import tensorflow as tf
from tensorflow.python.client import device_lib

from bert.common.progress import duration
from bert.training.objective import Phase
from bert.training.train_step import TrainStep

_WARM_UP, _STEPS = 2, 10
_RSS_PEAK, _RESET_PEAK = "/proc/self/status", "/proc/self/clear_refs"


def report(train_step: TrainStep, phases: list[Phase]) -> None:
    """Prints the memory and the time of a run; takes training steps.

    Weights, gradients and two moments take 16 bytes per parameter. The rest
    grows with the batch. The largest batch that fits is estimated from the
    memory of a batch and of a doubled batch. The estimate assumes sequences as
    long as the longest ones of the first steps.

    Args:
        train_step: TrainStep. The step of the run.
        phases: list of Phase. Phases of its training, in order.
    """
    variables = train_step.model.trainable_variables
    parameters = sum(x.shape.num_elements() for x in variables)
    print(
        f"{parameters:,} parameters trained: {_megabytes(16 * parameters)} of "
        "weights, gradients and moments"
    )

    first, seconds = train_step.optimizer.step, []
    for phase in phases:
        count = phase.end_step - first
        if count > 0:
            # The input data starts at the current step.
            train_step.optimizer.iterations.assign(first)
            seconds.append(_report_phase(train_step, phase, count))
            first = phase.end_step
    if len(seconds) > 1:
        print(f"all steps take {duration(sum(seconds))}")


def _report_phase(train_step: TrainStep, phase: Phase, num_steps: int) -> float:
    """Prints the memory and the time of a phase; returns its seconds."""
    batches, seconds = phase.batches(train_step.optimizer.step), []
    iterator, once = iter(batches), tf.constant(1)
    for _ in range(_WARM_UP + _STEPS):
        start = time.perf_counter()
        train_step.train(iterator, once).numpy()
        seconds.append(time.perf_counter() - start)
    step = statistics.median(seconds[-_STEPS:])

    # Each device holds an equal part of a batch.
    widest = max(batches.take(_WARM_UP + _STEPS), key=_size)
    size, devices = phase.batch_size, train_step.strategy.num_replicas_in_sync
    peak, limit = _peak(train_step, widest, 1), _memory()
    example = max(1, _peak(train_step, widest, 2) - peak) * devices / size
    largest = int(size + (limit - peak) * devices / example)

    print(
        f"batch of {size}: {_megabytes(peak)} of {_megabytes(limit)} on each "
        f"device, {_megabytes(example / devices)} for an example more; about "
        f"{largest:,} fit\n"
        f"{step:.3f} s a step, {size / step:,.1f} examples/s: "
        f"{num_steps:,} steps take {duration(num_steps * step)}"
    )
    return num_steps * step


def _size(batch: dict) -> int:
    return sum(x.shape.num_elements() for x in batch.values())


def _peak(train_step: TrainStep, batch: dict, times: int) -> int:
    """Bytes of memory while a step runs on a repeated batch."""
    batch = {name: tf.repeat(x, times, 0) for name, x in batch.items()}
    repeated = iter(tf.data.Dataset.from_tensors(batch).repeat())
    train_step.train(repeated, tf.constant(1)).numpy()  # compiles it
    gpus = tf.config.list_logical_devices("GPU")
    if gpus:
        tf.config.experimental.reset_memory_stats("GPU:0")
    else:
        # Writing 5 resets the memory peak to the current usage.
        with open(_RESET_PEAK, "w") as file:
            file.write("5")
    train_step.train(repeated, tf.constant(1)).numpy()
    if gpus:
        return tf.config.experimental.get_memory_info("GPU:0")["peak"]
    with open(_RSS_PEAK) as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["VmHWM"].split()[0]) << 10


def _memory() -> int:
    """Bytes of memory of the first GPU, or of the machine."""
    for device in device_lib.list_local_devices():
        if device.device_type == "GPU":
            return device.memory_limit
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.1f} MB"
