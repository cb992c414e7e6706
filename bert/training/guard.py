"""Checks of each training step: numbers that are not finite, loss spikes.

A step whose loss or gradient is not finite changes no weight (see `steps`);
here it is logged, and several of them in a row end the run. Errors of
TensorFlow get the number of their step.
"""

import collections
import contextlib
import statistics
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from bert.common.errors import UserError
from bert.common.progress import say
from bert.training import logs
from bert.training.steps import Steps

MAX_BAD_STEPS = 3  # in a row
WINDOW = 128  # losses that a spike is compared with
DEVIATIONS = 6.0


def check(
    steps: Steps,
    losses: collections.deque[float],
    step: int,
    sums: np.ndarray,
    records_of: Callable[[int], str],
) -> np.ndarray:
    """Warns of bad steps and of spikes, after they were taken.

    Args:
        steps: holds the number of successive bad steps.
        losses: of the last `WINDOW` good steps, to which these are added.
        step: number of the step before the first of them.
        sums: from `Steps.train`.
        records_of: step -> the sources of the examples in its batch.

    Returns:
        the sums of the good steps.

    Raises:
        UserError: three steps in a row were not finite.
    """
    finite = np.isfinite(sums).all(1)
    for number, (row, good) in enumerate(zip(sums, finite), step + 1):
        means = logs.means(steps, row, 1)
        *parts, norm, loss_scale = row

        if good:
            steps.bad_steps = 0
            limit = limit_of(losses, means["loss"])
            if limit is not None:
                say(
                    f"warning: step {number}: loss {means['loss']:.4f} "
                    f"spikes above {limit:.4f}, the mean of the last steps "
                    "and six standard deviations; examples of its batch: "
                    f"{records_of(number)}"
                )

        # Else the cause is just a loss scale that is too large.
        elif loss_scale <= 1.0 or not np.isfinite(parts).all():
            shown = ", ".join(
                f"{name} {x:.4g}"
                for name, x in means.items()
                if name.endswith("loss")
            )
            say(
                f"warning: step {number}: {shown}, gradient norm "
                f"{norm:.4g}: the batch was skipped; its examples: "
                f"{records_of(number)}"
            )
            _count_bad_step(steps, number)
    return sums[finite]


def limit_of(losses: collections.deque[float], loss: float) -> float | None:
    """Compares the loss of the next step with those before, and adds it.

    The first `WINDOW` steps are never spikes.

    Args:
        losses: of the last steps, with `WINDOW` as its maximum length.
        loss: finite.

    Returns:
        the limit that a spike exceeds, six standard deviations above the
        mean of the last 128 steps; None if the loss is no spike.
    """
    # Compared before it is added: a spike must not raise its limit.
    limit = None
    if len(losses) == WINDOW:
        mean = statistics.fmean(losses)
        deviation = statistics.pstdev(losses, mean)
        limit = mean + DEVIATIONS * deviation
    losses.append(loss)
    return limit if limit is not None and loss > limit else None


def _count_bad_step(steps: Steps, step: int) -> None:
    steps.bad_steps += 1
    if steps.bad_steps == MAX_BAD_STEPS:
        raise UserError(
            f"steps {step - MAX_BAD_STEPS + 1} to {step} gave no finite "
            "loss and gradient",
            expected="finite numbers",
            fix="look at the examples named above, or lower --learning_rate",
        )


@contextlib.contextmanager
def naming_the_step(steps: Steps) -> Iterator[None]:
    """Adds the number of the step to TensorFlow's errors."""
    try:
        yield
    except tf.errors.OpError as error:
        if "determinis" in str(error).lower():
            raise UserError(
                f"no deterministic operation: {str(error).splitlines()[0]}",
                fix="pass --nodeterministic",
            ) from None
        error.add_note(f"at step {steps.optimizer.step}")
        raise
