"""Task to train, and the phases of its training.

A task defines the network, losses, examples, selection metric and outputs.
`training.trainer.Trainer` trains it.
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import keras
import tensorflow as tf

from bert.training.optimization import Schedule


@dataclasses.dataclass(frozen=True)
class Task:
    """A network with its losses, data, metrics and outputs.

    Attributes:
        name: str. Name such as "swag"; title of the report.
        build: function. () -> the network.
        objectives: tuple of str. Names of the losses, in the order of the log.
        loss_normalizers, loss_sums: functions. The losses, see
            `training.train_step`.
        learning_rate: Schedule. Learning rate of each step.
        metrics: tuple of str. Sums of `loss_sums` for each objective,
            besides the weight.
        records: str. JSON value that identifies the training data.
        metric: str. Name of the metric that selects the best checkpoint.
        is_loss: bool. Whether a lower metric is better.
        compares_rows: bool. Whether the losses compare the rows of a batch, so
            that `loss_sums` needs the outputs of all micro-batches.
        examples: data.records.examples.Examples or None. Training examples.
            None without training, and in pre-training, which reads records.
        labels: dict or None. Kind and names of the labels, and the settings
            that predictions depend on, as in `task.json`.
        pooling_config: PoolingConfig or None. Pooling of the embeddings that
            the checkpoints compute.
        validate: function or None. Trainer -> metrics of the current weights,
            during training.
        evaluate: function or None. Trainer -> (metrics, report) of the final
            weights; see `tasks.eval_report`.
        predict: function or None. Trainer -> paths of written predictions.
        describe: function or None. Trainer -> `task.json` of an export.
            Default: None, `labels`.
        sample: function. () -> token sequences of training texts, which
            calibrate an 8-bit network.
        check_network: function or None. (trainer, engine) -> metrics of an
            exported network.
        example: function. () -> name of an input -> text, to try an export.
    """

    name: str
    build: Callable[[], keras.Model]
    objectives: tuple[str, ...]
    loss_normalizers: Callable[[dict], dict[str, tf.Tensor]]
    loss_sums: Callable[[dict, dict], dict[str, tf.Tensor]]
    learning_rate: Schedule
    metrics: tuple[str, ...] = ("loss", "accuracy")
    records: str = ""
    metric: str = "loss"
    is_loss: bool = False
    compares_rows: bool = False
    examples: Any = None
    labels: dict | None = None
    pooling_config: Any = None
    validate: Callable[[Any], dict[str, float]] | None = None
    evaluate: Callable[[Any], tuple[dict[str, float], dict]] | None = None
    predict: Callable[[Any], list[str]] | None = None
    describe: Callable[[Any], dict] | None = None
    sample: Callable[[], Iterable] = tuple
    check_network: Callable[[Any, Any], dict[str, float]] | None = None
    example: Callable[[], dict[str, str]] = dict


@dataclasses.dataclass(frozen=True)
class Phase:
    """Training steps on the same data.

    Attributes:
        end_step: int. Last step of the phase.
        batch_size: int. Examples of the whole batch, over all devices.
        batches: function. Trainer -> endless batches from the current step on.
        records_of: function. Step -> sources of the examples in its batch,
            which are logged for bad steps.
    """

    end_step: int
    batch_size: int
    batches: Callable[[Any], tf.data.Dataset]
    records_of: Callable[[int], str] = "batch {}".format
