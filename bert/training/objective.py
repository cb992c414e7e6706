"""Objective of a `Trainer`, and the phases of its training."""

import dataclasses
from collections.abc import Callable

import keras
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Objective:
    """A network with its losses, its learning rate and its metrics.

    Attributes:
        build: function. () -> the network.
        losses: tuple of str. Names of the losses, in the order of the log.
        loss_normalizers, loss_sums: functions. The losses, see
            `training.train_step`.
        learning_rate: function. Step, int scalar -> learning rate, float32
            scalar, such as a schedule of `keras.optimizers.schedules`.
        num_steps: int. Number of training steps. Default: 0.
        num_warmup_steps: int. Number of warm-up steps. Default: 0.
        sums: tuple of str. Sums of `loss_sums` for each loss, besides the
            weight.
        metric: str. Name of the metric that selects the best weights.
        sign: int. 1 if a higher metric is better, -1 if a lower one is.
        compares_rows: bool. Whether the losses compare the rows of a batch, so
            that `loss_sums` needs the outputs of all micro-batches.
    """

    build: Callable[[], keras.Model]
    losses: tuple[str, ...]
    loss_normalizers: Callable[[dict], dict[str, tf.Tensor]]
    loss_sums: Callable[[dict, dict], dict[str, tf.Tensor]]
    learning_rate: Callable
    num_steps: int = 0
    num_warmup_steps: int = 0
    sums: tuple[str, ...] = ("loss", "accuracy")
    metric: str = "loss"
    sign: int = 1
    compares_rows: bool = False


@dataclasses.dataclass(frozen=True)
class Phase:
    """Training steps on the same data.

    Attributes:
        end_step: int. Last step of the phase.
        batch_size: int. Examples of the whole batch, over all devices.
        batches: function. Step -> endless batches from the next step on.
        records_of: function. Step -> sources of the examples in its batch,
            which are logged for bad steps.
    """

    end_step: int
    batch_size: int
    batches: Callable[[int], tf.data.Dataset]
    records_of: Callable[[int], str] = "batch {}".format
