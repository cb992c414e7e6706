"""Keras models of texts in windows: what two classes share.

    texts, labels -> examples -> windows -> logits -> answers of the examples

Each takes these functions as its methods, besides those of `text_model`. It
has `_examples`, which checks texts and labels, `_labeled`, the columns of
examples to train on, `_windows`, their features, `_answers` and `_scores`,
and `_token_axis`, that of the logits.
"""

import keras
import tensorflow as tf

from bert import row_batches, text_batches, text_model
from bert.common.errors import UserError
from bert.data import features


def fit(
    model,
    x,
    y,
    batch_size: int = 32,
    epochs: int = 1,
    *,
    learning_rate: float | None = None,
    validation_split: float = 0.0,
    validation_data: tuple | None = None,
    shuffle: bool = True,
    callbacks=None,
    **kwargs,
):
    """Trains on texts.

    Args:
        model: the model.
        x: the texts.
        y: their labels.
        batch_size: B, in windows. Every batch is full: the last one of an
            epoch takes the first windows of the next.
        epochs: passes over the texts.
        learning_rate: peak of the schedule, without `compile`; default: 5e-5,
            as in the original.
        validation_split: share of the texts, the last ones, to evaluate on
            after each epoch.
        validation_data: (x, y) to evaluate on instead.
        shuffle: draw another order in each epoch.
        callbacks: of Keras; `val_f1` and the like are in their logs.
        **kwargs: of Keras.

    Returns:
        the `keras.callbacks.History`.

    Raises:
        UserError: a text, a label or an argument is invalid.
    """
    examples, held_out = _examples(model, x, y), None
    if validation_split:
        (examples,), (held_out,) = text_batches.split(
            (examples,), validation_split
        )
    elif validation_data is not None:
        held_out = _examples(model, *validation_data)

    callbacks = keras.tree.flatten(callbacks or [])
    if held_out is not None:
        callbacks = [_Validation(held_out, batch_size), *callbacks]

    columns = model._labeled(examples)
    if not columns[0]:
        raise UserError("no texts", expected="one or more")
    batches = row_batches.training(columns, batch_size, model.seed, shuffle)
    return text_model.train(
        model, batches, epochs, learning_rate, callbacks=callbacks, **kwargs
    )


def evaluate(model, x, y, batch_size: int = 32, **kwargs) -> dict[str, float]:
    """Scores the answers of labeled texts, as the script does.

    Args:
        model: the model.
        x: the texts.
        y: their labels.
        batch_size: B, in windows.
        **kwargs: of Keras' `predict`.

    Returns:
        name -> value of the metrics.

    Raises:
        UserError: a text or a label is invalid.
    """
    examples = _examples(model, x, y)
    windows, logits = _run(model, examples, batch_size, **kwargs)
    if not windows:
        raise UserError("no texts", expected="one or more")
    return model._scores(examples, windows, logits)


def predict(model, x, batch_size: int = 32, **kwargs) -> dict:
    """Predicts the answers of texts; the class tells them.

    Args:
        model: the model.
        x: the texts.
        batch_size: B, in windows.
        **kwargs: of Keras.

    Raises:
        UserError: a text is invalid.
    """
    examples = model._examples(x)
    return model._answers(
        examples, *_run(model, examples, batch_size, **kwargs)
    )


def predict_on_batch(model, x) -> dict:
    """The answers of `predict` for one batch of texts, at once."""
    examples = model._examples(x)
    windows = [*model._windows(examples)]

    logits = ()
    if windows:
        inputs, *_ = row_batches.batch((rows(windows),))
        with text_model.compiling(model):
            logits = keras.Model.predict_on_batch(model, inputs)
    return model._answers(examples, windows, logits)


def predict_step(model, data) -> tf.Tensor:
    """Logits of the same length for each batch, which Keras concatenates."""
    inputs, *_ = keras.utils.unpack_x_y_sample_weight(data)
    logits = model(inputs, training=False)
    padding = [[0, 0]] * len(logits.shape)
    length = tf.shape(inputs[features.INPUT_IDS])[1]
    padding[model._token_axis] = [0, model.max_length - length]
    return tf.pad(logits, padding)


def columns(model, x, y, weights) -> tuple:
    """The columns of labeled texts, which have no weights."""
    if weights is not None:
        raise UserError("sample_weight is given", expected="none")
    return model._labeled(_examples(model, x, y))


class _Validation(keras.callbacks.Callback):
    """Adds the scores of examples to the logs of an epoch.

    Args:
        examples: the examples.
        batch_size: B, in windows.
    """

    def __init__(self, examples: list, batch_size: int):
        super().__init__()
        self._examples, self._batch_size = examples, batch_size

    def on_epoch_end(self, epoch, logs):
        """Callbacks behind this one see the same logs."""
        answers = _run(self.model, self._examples, self._batch_size, verbose=0)
        scores = self.model._scores(self._examples, *answers)

        # Those of each type of entities would fill the progress line.
        logs |= {f"val_{x}": y for x, y in scores.items() if "_" not in x}


def _examples(model, x, y) -> list:
    if y is None:
        raise UserError("y is None", expected="the labels of the texts")
    return model._examples(x, y)


def _run(model, examples: list, batch_size: int, **kwargs) -> tuple:
    """The windows of examples, and the logits of each."""
    windows = [*model._windows(examples)]
    batches, order = row_batches.by_length(rows(windows), batch_size)

    logits = ()
    if windows:  # Keras does not predict nothing
        with text_model.compiling(model):
            logits = keras.Model.predict(model, batches, **kwargs)[order]
    return windows, logits


def rows(windows: list[dict]) -> list[tuple]:
    """Ids and segment ids of windows."""
    return [(x[features.INPUT_IDS], x[features.SEGMENT_IDS]) for x in windows]
