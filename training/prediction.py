"""Outputs of a model for batches of any number of rows."""

from collections.abc import Callable

import numpy as np
import tensorflow as tf


class Predictor:
    """Runs a function over batches, on all devices of a strategy.

    A batch is filled up with copies of its first row until it divides evenly
    over the devices; a TPU, which compiles every shape, always gets whole
    batches.

    Args:
        function: dict of tensors [B, ...] -> dict of tensors [B, ...].
        strategy: whose devices share a batch.
        batch_size: rows of a whole batch.
    """

    def __init__(
        self,
        function: Callable[[dict], dict],
        strategy: tf.distribute.Strategy,
        batch_size: int,
    ):
        self._strategy = strategy
        self._multiple = strategy.num_replicas_in_sync
        if isinstance(strategy, tf.distribute.TPUStrategy):
            self._multiple = batch_size

        @tf.function(reduce_retracing=True)
        def run(batch):
            outputs = strategy.run(function, args=(batch,))
            return {
                name: strategy.gather(value, axis=0)
                for name, value in outputs.items()
            }

        self._run = run

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Runs one batch; several workers run the same ones together.

        Args:
            batch: arrays [B, ...] of the same B.

        Returns:
            the outputs of its B rows.
        """
        rows = len(next(iter(batch.values())))
        filled = -(-rows // self._multiple) * self._multiple
        places = np.arange(filled) * (np.arange(filled) < rows)
        replicas = self._strategy.num_replicas_in_sync
        size = filled // replicas

        def part(context):
            start = context.replica_id_in_sync_group * size
            mine = places[start : start + size]
            return {name: tf.constant(v[mine]) for name, v in batch.items()}

        distributed = (
            self._strategy.experimental_distribute_values_from_function(part)
        )
        outputs = self._run(distributed)
        return {name: value.numpy()[:rows] for name, value in outputs.items()}
