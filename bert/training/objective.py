"""Objective of a `Trainer`, and the phases of its training."""

import dataclasses
from collections.abc import Callable
from typing import Protocol

import tensorflow as tf


class Loss(Protocol):
    """A loss of a batch, as sums that are divided by a weight.

    Attributes:
        name: str. Name in logs.
        has_accuracy: bool. Whether `sums` counts correct predictions.
        compares_rows: bool. Whether it compares the rows of a batch, so that
            `sums` needs the outputs of all micro-batches.
    """

    name: str
    has_accuracy: bool
    compares_rows: bool

    def weight(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns the weight of a whole batch, float32 scalar."""

    def sums(
        self, batch: dict[str, tf.Tensor], outputs: dict[str, tf.Tensor]
    ) -> dict[str, tf.Tensor]:
        """Returns sums over a part of a batch, float32 scalars.

        Args:
            batch: dict. The part.
            outputs: dict. Outputs of the network for it.

        Returns:
            dict of "loss", "weight" and, with `has_accuracy`, "accuracy".
        """


@dataclasses.dataclass(frozen=True)
class Objective:
    """Losses, learning rate and metrics of the training of a network.

    Attributes:
        losses: tuple of Loss. In the order of the log. The loss of a step is
            the sum of their sums, each divided by its weight.
        schedule: function. Step, int scalar -> learning rate, float32
            scalar, such as a schedule of `keras.optimizers.schedules`.
        num_steps: int. Number of training steps. Default: 0.
        num_warmup_steps: int. Number of warm-up steps. Default: 0.
        metric: str. Name of the metric that selects the best weights.
        sign: int. 1 if a higher metric is better, -1 if a lower one is.
    """

    losses: tuple[Loss, ...]
    schedule: Callable
    num_steps: int = 0
    num_warmup_steps: int = 0
    metric: str = "loss"
    sign: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the losses."""
        return tuple(loss.name for loss in self.losses)


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
