"""What all workers must do alike, though each sees it for itself.

A signal reaches one of them first, and how many steps fit into a call follows
from a clock. One that stopped alone would leave the others waiting for ever.
"""

import functools
import json
import zlib

import numpy as np
import tensorflow as tf

from common.errors import UserError


def gather(strategy: tf.distribute.Strategy, *values: float) -> np.ndarray:
    """What each worker says.

    Args:
        strategy: of the run; only one of several workers asks anybody.
        values: what this process says, exact in float64.

    Returns:
        float64 [R, len(values)], R replicas; R = 1 in a single process.
    """
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return np.array([values], np.float64)
    said = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant([values], tf.float64)
    )
    return _gatherer(strategy)(said).numpy()


def most(strategy: tf.distribute.Strategy, number: int) -> int:
    """The largest number of all workers'."""
    return int(gather(strategy, number).max())


def fewest(strategy: tf.distribute.Strategy, number: int) -> int:
    """The smallest number of all workers'."""
    return int(gather(strategy, number).min())


def wait(strategy: tf.distribute.Strategy) -> None:
    """Waits until every worker is here."""
    gather(strategy, 0)


def check_step(
    strategy: tf.distribute.Strategy, step: int, folder: str
) -> None:
    """Refuses workers that start from different steps.

    Args:
        strategy: of the run.
        step: where this worker starts.
        folder: where it has looked for checkpoints.

    Raises:
        UserError: another worker is at another step.
    """
    steps = sorted({int(x) for x in gather(strategy, step)[:, 0]})
    if len(steps) > 1:
        raise UserError(
            f"workers are at the steps {', '.join(map(str, steps))}",
            path=folder,
            expected="the same checkpoints in --output_dir on all workers",
            fix="put it into a folder that they share",
        )


def check_settings(
    strategy: tf.distribute.Strategy, settings: dict[str, object]
) -> None:
    """Refuses workers that were not told the same.

    Args:
        strategy: of the run.
        settings: name -> JSON value that decides what a step computes.

    Raises:
        UserError: another worker has another value; all raise it.
    """
    marks = [
        zlib.crc32(json.dumps(value, sort_keys=True).encode())
        for value in settings.values()
    ]
    said = gather(strategy, *marks).T
    differing = [
        name
        for name, column in zip(settings, said, strict=True)
        if len(set(column)) > 1
    ]
    if differing:
        raise UserError(
            f"workers differ in {', '.join(differing)}",
            expected="the same command and files on all of them",
        )


# A function is traced once for each strategy: a tenth of a second.
@functools.cache
def _gatherer(strategy: tf.distribute.Strategy):
    return tf.function(lambda said: strategy.gather(said, axis=0))
