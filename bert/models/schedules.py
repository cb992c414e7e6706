"""The optimizer and the learning rate that `fit` uses by default."""

import keras

from bert.common.errors import UserError
from bert.training.optimization import AdamWeightDecay, WarmupLinearDecay

_RATE, _WARMUP = 5e-5, 0.1  # as in the original; fraction of the steps
_SCHEDULE = keras.optimizers.schedules.LearningRateSchedule
_SET_RATE = (
    keras.callbacks.LearningRateScheduler,
    keras.callbacks.ReduceLROnPlateau,
)


def default_optimizer(
    learning_rate: float | None, steps: int
) -> AdamWeightDecay:
    """Returns the optimizer with the schedule of the original BERT.

    Args:
        learning_rate: float or None. Peak of the schedule. None: 5e-5.
        steps: int. Number of steps of the training.
    """
    peak = _RATE if learning_rate is None else learning_rate
    schedule = WarmupLinearDecay(peak, steps, int(_WARMUP * steps))
    return AdamWeightDecay(schedule)


def check_callbacks(callbacks: list, optimizer) -> None:
    """Rejects callbacks that set the learning rate of a schedule.

    Keras would fail only when the callback changes the rate.

    Args:
        callbacks: list of keras.callbacks.Callback. The callbacks of `fit`.
        optimizer: keras.optimizers.Optimizer. The compiled optimizer.

    Raises:
        UserError: A callback sets the learning rate of a schedule.
    """
    rate = optimizer._learning_rate
    for callback in callbacks:
        if isinstance(callback, _SET_RATE) and isinstance(rate, _SCHEDULE):
            raise UserError(
                f"{type(callback).__name__}, and a schedule of learning rates",
                expected="one of them",
                fix="call compile first, as in compile("
                "keras.optimizers.Adam(2e-5))",
            )
