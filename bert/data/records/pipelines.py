"""Settings that all tf.data pipelines share."""

import tensorflow as tf

BATCHES_AHEAD = 8  # prefetched while a step runs


def without_autotuning(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Turns off autotuning, which runs in a thread of its own.

    A destroyed iterator joins this thread, which sometimes sleeps for as long
    as the iterator has lived, up to a minute. Without it, parallel maps use a
    thread per core.

    Args:
        dataset: a complete pipeline.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


def part_of_batch(batch_size: int, share: tuple[int, int]) -> slice:
    """The examples of a batch that one of several workers computes.

    Args:
        batch_size: examples of the whole batch, a multiple of the workers.
        share: number of the worker, from 0, and of all workers.
    """
    worker, workers = share
    size = batch_size // workers
    return slice(worker * size, (worker + 1) * size)
