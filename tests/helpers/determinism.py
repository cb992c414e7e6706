"""The state of TensorFlow that a run with a seed leaves in its process."""

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import config


def end() -> None:
    """Ends the determinism and the seed of a run."""
    # Only then: functions that are kept would be optimized again.
    if config.is_op_determinism_enabled() or context.global_seed() is not None:
        config.disable_op_determinism()
        tf.random.set_seed(None)
