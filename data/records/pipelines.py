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
