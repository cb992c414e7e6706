"""Checks of each training step: non-finite numbers and loss spikes.

A step with a non-finite loss or gradient changes no weight, see `train_step`.
This module logs such steps, and stops the run after several of them in a row.
It also adds the number of the step to errors of TensorFlow.
"""

import collections
import contextlib
import statistics
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from bert.common.errors import UserError
from bert.common.progress import log
from bert.training import logs
from bert.training.train_step import TrainStep

MAX_BAD_STEPS = 3  # in a row
WINDOW = 128  # number of losses that a loss is compared with
DEVIATIONS = 6.0


def check(
    train_step: TrainStep,
    losses: collections.deque[float],
    step: int,
    sums: NDArray,
    records_of: Callable[[int], str],
) -> NDArray:
    """Warns of bad steps and of loss spikes, after the steps were taken.

    Args:
        train_step: TrainStep. Holds the number of successive bad steps.
        losses: deque of float. Losses of the last `WINDOW` good steps; the new
            losses are appended.
        step: int. Number of the step before the first one of `sums`.
        sums: float32 [steps, ...]. Result of `TrainStep.train`.
        records_of: function. Step -> sources of the examples in its batch.

    Returns:
        The sums of the good steps.

    Raises:
        UserError: three steps in a row were not finite.
    """
    finite = np.isfinite(sums).all(1)
    for number, (row, good) in enumerate(zip(sums, finite), step + 1):
        means = logs.means(train_step, row, 1)
        *parts, norm, loss_scale = row

        if good:
            train_step.bad_steps = 0
            limit = limit_of(losses, means["loss"])
            if limit is not None:
                log(
                    f"warning: step {number}: loss {means['loss']:.4f} "
                    f"spikes above {limit:.4f}, the mean of the last steps "
                    "and six standard deviations; examples of its batch: "
                    f"{records_of(number)}"
                )

        # Otherwise only the loss scale is too large.
        elif loss_scale <= 1.0 or not np.isfinite(parts).all():
            shown = ", ".join(
                f"{name} {x:.4g}"
                for name, x in means.items()
                if name.endswith("loss")
            )
            log(
                f"warning: step {number}: {shown}, gradient norm "
                f"{norm:.4g}: the batch was skipped; its examples: "
                f"{records_of(number)}"
            )
            _count_bad_step(train_step, number)
    return sums[finite]


def limit_of(losses: collections.deque[float], loss: float) -> float | None:
    """Compares the loss of the next step with earlier losses, and appends it.

    The first `WINDOW` steps are never spikes.

    Args:
        losses: deque of float. Last losses, with maximum length `WINDOW`.
        loss: float. Finite loss of the step.

    Returns:
        The limit that a spike exceeds: six standard deviations above the mean
        of the last 128 steps. None if the loss is not a spike.
    """
    # Compared before it is appended: a spike must not raise its own limit.
    limit = None
    if len(losses) == WINDOW:
        mean = statistics.fmean(losses)
        deviation = statistics.pstdev(losses, mean)
        limit = mean + DEVIATIONS * deviation
    losses.append(loss)
    return limit if limit is not None and loss > limit else None


def _count_bad_step(train_step: TrainStep, step: int) -> None:
    train_step.bad_steps += 1
    if train_step.bad_steps == MAX_BAD_STEPS:
        raise UserError(
            f"steps {step - MAX_BAD_STEPS + 1} to {step} gave no finite "
            "loss and gradient",
            expected="finite numbers",
            fix="look at the examples named above, or lower --learning_rate",
        )


@contextlib.contextmanager
def annotate_errors(train_step: TrainStep) -> Iterator[None]:
    """Adds the number of the step to TensorFlow's errors."""
    try:
        yield
    except tf.errors.OpError as error:
        if "determinis" in str(error).lower():
            raise UserError(
                f"no deterministic operation: {str(error).splitlines()[0]}",
                fix="pass --nodeterministic",
            ) from None
        error.add_note(f"at step {train_step.optimizer.step}")
        raise
