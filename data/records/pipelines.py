"""What all pipelines of tf.data share."""

import tensorflow as tf

BATCHES_AHEAD = 8  # that are made while a step runs


def untuned(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """The dataset, without the thread that TensorFlow tunes it with.

    An iterator that goes away joins this thread, which now and then sleeps
    through its end: for as long as the iterator has lived, up to a minute.
    Parallel maps take a thread a core instead.

    Args:
        dataset: all of a pipeline.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
