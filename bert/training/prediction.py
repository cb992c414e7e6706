"""Prediction on batches of any size."""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from bert.training import distribution


class Predictor:
    """Runs a function over batches, on all devices of a strategy.

    A batch is filled up with copies of its first example until it
    divides evenly over the devices. A TPU compiles a program for each shape, so
    there all batches have the full size and every shape is static.

    Args:
        function: function. Dict of tensors [B, ...] -> dict of the same.
        strategy: tf.distribute.Strategy. Devices that share each batch.
        batch_size: int. Number of examples of a full batch.

    Attributes:
        is_static: bool. Whether each shape of a batch compiles a new program.
    """

    def __init__(
        self,
        function: Callable[[dict], dict],
        strategy: tf.distribute.Strategy,
        batch_size: int,
    ):
        self._strategy = strategy
        self._multiple = strategy.num_replicas_in_sync

        self.is_static = distribution.is_tpu(strategy)
        if self.is_static:
            self._multiple = -(-batch_size // self._multiple) * self._multiple

        @tf.function(reduce_retracing=not self.is_static)
        def run(batch):
            outputs = strategy.run(function, args=(batch,))
            return {
                name: strategy.gather(value, axis=0)
                for name, value in outputs.items()
            }

        self._run = run

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Runs one batch; several workers run the same batches together.

        Args:
            batch: dict of arrays [B, ...]. All have the same B.

        Returns:
            Dict of arrays [B, ...], the outputs of the examples.
        """
        count = len(next(iter(batch.values())))

        # Copies of the first example fill up the batch.
        filled = -(-count // self._multiple) * self._multiple
        indices = np.arange(filled) * (np.arange(filled) < count)
        replicas = self._strategy.num_replicas_in_sync
        size = filled // replicas

        def part(context):
            start = context.replica_id_in_sync_group * size
            rows = indices[start : start + size]
            return {name: tf.constant(v[rows]) for name, v in batch.items()}

        distributed = (
            self._strategy.experimental_distribute_values_from_function(part)
        )
        outputs = self._run(distributed)
        return {name: value.numpy()[:count] for name, value in outputs.items()}
