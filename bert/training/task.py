"""A task: what a run trains, as a value; and the phases of its training.

What makes a task another one than the next is its network, its losses, its
examples, a metric, and what it writes. What trains is `training.run.Run`.
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import keras
import tensorflow as tf

from bert.training.optimization import Schedule


@dataclasses.dataclass(frozen=True)
class Task:
    """A network with its losses, and what is computed with it.

    Attributes:
        name: such as "swag"; names the report.
        build: () -> the network.
        objectives: names of the losses, in the order of the log lines.
        batch_weights, batch_sums: the losses, see `training.steps`.
        measures: sums of `batch_sums` for each objective, besides the weight.
        learning_rate: its schedule, which knows the number of steps.
        records: JSON value that identifies the training data.
        metric: name of the metric that chooses the best checkpoint.
        is_loss: whether a lower metric is better.
        compares_rows: whether the losses compare the rows of a batch, so that
            `batch_sums` needs the outputs of all micro-batches of a replica.
        examples: of training, `data.records.examples.Examples`; None: no
            training, or pre-training, whose phases read records.
        labels: kind and names of the labels, and the settings that
            predictions depend on, as in `task.json`; or None.
        vectors: `TextVectors` that the checkpoints give, or None.
        validate: run -> metrics of the current weights, during training.
        evaluate: run -> metrics and a report, see `tasks.eval_report`, of the
            weights at the end.
        predict: run -> paths of the predictions that it writes, if any.
        describe: run -> the `task.json` of an export; None: `labels`.
        sample: () -> sequences of texts of training, which calibrate a network
            of 8 bits.
        check_network: (run, engine) -> metrics of an exported network.
        example: () -> name of an input -> text, to try an export with.
    """

    name: str
    build: Callable[[], keras.Model]
    objectives: tuple[str, ...]
    batch_weights: Callable[[dict], dict[str, tf.Tensor]]
    batch_sums: Callable[[dict, dict], dict[str, tf.Tensor]]
    learning_rate: Schedule
    measures: tuple[str, ...] = ("loss", "accuracy")
    records: str = ""
    metric: str = "loss"
    is_loss: bool = False
    compares_rows: bool = False
    examples: Any = None
    labels: dict | None = None
    vectors: Any = None
    validate: Callable[[Any], dict[str, float]] | None = None
    evaluate: Callable[[Any], tuple[dict[str, float], dict]] | None = None
    predict: Callable[[Any], list[str]] | None = None
    describe: Callable[[Any], dict] | None = None
    sample: Callable[[], Iterable] = tuple
    check_network: Callable[[Any, Any], dict[str, float]] | None = None
    example: Callable[[], dict[str, str]] = dict


@dataclasses.dataclass(frozen=True)
class Phase:
    """Steps of training on the same data.

    Attributes:
        last: its last step.
        batch_size: examples of the whole batch, over all devices.
        batches: run -> its batches from the current step on, without end.
        records_of: step -> the sources of the examples in its batch; logged
            for bad steps.
    """

    last: int
    batch_size: int
    batches: Callable[[Any], tf.data.Dataset]
    records_of: Callable[[int], str] = "batch {}".format
