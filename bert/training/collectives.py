"""Numbers that workers exchange, so that all make the same decisions."""

import functools
import json
import zlib

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from bert.common.errors import UserError


def gather(strategy, *values: float) -> NDArray:
    """Gathers numbers from all workers; in one process, returns them.

    Args:
        strategy: tf.distribute.Strategy. Strategy of the run. Workers only
            communicate under `MultiWorkerMirroredStrategy`.
        *values: float. Numbers of this process, exact in float64.

    Returns:
        float64 [R, len(values)] for R replicas. R = 1 in a single process.
    """
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return np.array([values], np.float64)

    values_of_replicas = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant([values], tf.float64)
    )
    return _gatherer(strategy)(values_of_replicas).numpy()


def barrier(strategy) -> None:
    """Waits until every worker has called this."""
    gather(strategy, 0)


def check_settings(
    strategy, settings: dict[str, object], fix: str | None = None
) -> None:
    """Checks that all workers have the same settings.

    Args:
        strategy: tf.distribute.Strategy. Strategy of the run.
        settings: dict. Name -> JSON value that a training step depends on.
        fix: str or None. Advice to the user. Default: None.

    Raises:
        UserError: the workers have different values; all workers raise it.
    """
    # Numbers of 32 bits pass exactly through float64.
    hashes = [
        zlib.crc32(json.dumps(value, sort_keys=True).encode())
        for value in settings.values()
    ]

    gathered = gather(strategy, *hashes).T
    differing = [
        name
        for name, column in zip(settings, gathered, strict=True)
        if len(set(column)) > 1
    ]

    if differing:
        raise UserError(
            f"workers differ in {', '.join(differing)}",
            expected="the same command and files on all workers",
            fix=fix,
        )


# Traced once for each strategy, in a tenth of a second.
@functools.cache
def _gatherer(strategy):
    return tf.function(lambda values: strategy.gather(values, axis=0))
