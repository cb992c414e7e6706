"""Checks of `compile` and `fit`, and their default optimizer."""

import keras
import tensorflow as tf
from numpy.typing import NDArray

from bert.common.errors import UserError
from bert.training.optimization import AdamWeightDecay, WarmupLinearDecay

_RATE, _WARMUP = 5e-5, 0.1  # as in the original; fraction of the steps
_SCHEDULE = keras.optimizers.schedules.LearningRateSchedule
_SET_RATE = (
    keras.callbacks.LearningRateScheduler,
    keras.callbacks.ReduceLROnPlateau,
)


def default_optimizer(
    learning_rate: float | None, steps: int, rule: str
) -> AdamWeightDecay:
    """Returns the optimizer with the schedule of the original BERT.

    Args:
        learning_rate: float or None. Peak of the schedule. None: 5e-5.
        steps: int. Number of steps of the training.
        rule: str. Key of `optimization.RULES`.
    """
    peak = _RATE if learning_rate is None else learning_rate
    schedule = WarmupLinearDecay(peak, steps, int(_WARMUP * steps))
    return AdamWeightDecay(schedule, rule=rule)


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


def check_losses(model, y: NDArray, logits: NDArray) -> None:
    """Computes loss and metrics once: in `fit`, Keras' errors are long.

    Args:
        model: TextModel. A compiled model.
        y: array. Zeros with the type and shape of a batch of labels.
        logits: array. Zeros with the type and shape of a batch of logits.

    Raises:
        UserError: The loss or a metric cannot be computed.
    """
    shapes = [[None, *x.shape[1:]] for x in (y, logits)]
    for name, compute in (
        ("the loss", lambda: model.compute_loss(y=y, y_pred=logits)),
        ("a metric", lambda: model.compute_metrics(None, y, logits)),
    ):
        try:
            with model.distribute_strategy.scope():
                compute()
        except (ValueError, tf.errors.InvalidArgumentError) as error:
            reason = str(error).splitlines()[0].rpartition("}} ")[2]
            raise UserError(
                f"{name} cannot be computed: {reason:.200}",
                expected=f"one of {y.dtype} labels of shape {shapes[0]} "
                f"and logits of shape {shapes[1]}",
            ) from None
    model.reset_metrics()


def num_batches(batches: tf.data.Dataset) -> int:
    """Returns the size of a dataset, which a schedule needs.

    Args:
        batches: tf.data.Dataset. The batches of an epoch.

    Raises:
        UserError: The size is unknown.
    """
    size = int(batches.cardinality())
    if size < 1:
        raise UserError(
            "the size of the dataset is unknown", fix="pass steps_per_epoch"
        )
    return size
