"""Common settings of all tf.data pipelines."""

import tensorflow as tf

BATCHES_AHEAD = 8  # batches that are prefetched


def without_autotuning(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Turns off autotuning, which runs in a separate thread.

    A destroyed iterator joins this thread, which sometimes sleeps for as long
    as the iterator has lived, up to a minute. Without autotuning, parallel maps
    use a thread per core.

    Args:
        dataset: tf.data.Dataset. A complete pipeline.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


def part_of_batch(batch_size: int, worker: tuple[int, int]) -> slice:
    """Returns the slice of a batch that a worker computes.

    Args:
        batch_size: int. Number of examples in the full batch, a multiple of
            the number of workers.
        worker: (int, int). Index of the worker, from 0, and number of workers.
    """
    index, workers = worker
    size = batch_size // workers
    return slice(index * size, (index + 1) * size)
