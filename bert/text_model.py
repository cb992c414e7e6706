"""Keras models of texts: what `TextClassifier` and its kin share.

Each is a `keras.Model` with a network from ids to logits and a tokenizer, and
takes these functions as its methods. It has `_usual_loss`, the arguments of
`compile` that its task needs, and `_columns`, which encodes labeled texts.
"""

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator

import keras

from bert import encoders, row_batches
from bert.common import atomic, forks, outputs
from bert.common.errors import UserError
from bert.data.text.tokenizer import Tokenizer
from bert.modeling import task_models
from bert.modeling.formats.conversion import Bert
from bert.training.optimization import AdamWeightDecay, WarmupLinearDecay

_SCHEDULE = keras.optimizers.schedules.LearningRateSchedule
_SET_RATE = (
    keras.callbacks.LearningRateScheduler,
    keras.callbacks.ReduceLROnPlateau,
)
_RATE, _WARMUP = 5e-5, 0.1  # of the original; warm-up as a share of the steps


def length(
    network: keras.Model, given: int | None, usual: int, shortest: int = 3
) -> int:
    """Returns the maximum number of tokens of a row.

    Args:
        network: an encoder, or a model with one.
        given: the argument of the user, if any.
        usual: the default; fewer if the network has fewer positions.
        shortest: the least.

    Raises:
        UserError: the network has fewer positions, or there is no room.
    """
    longest = encoders.config_of(network).max_position_embeddings
    size = given or min(usual, longest)
    if not shortest <= size <= longest:
        raise UserError(
            f"max_length={size}", expected=f"{shortest} to {longest}"
        )
    return size


def compiling(model: keras.Model) -> threading.RLock:
    """The lock of a model, held while it is compiled or predicts.

    To compile is to drop the function that `predict` calls for each batch, so
    `fit` in one thread would break `predict` in another.
    """
    return model.__dict__.setdefault("_compiling", threading.RLock())


def compile_model(model, optimizer, loss=None, metrics=None, **kwargs):
    """As in `keras.Model`, with the loss of the labels by default.

    Args:
        model: the model.
        optimizer: the optimizer; `fit` keeps it.
        loss: of logits; None: that of the task.
        metrics: of logits; None: those of the task.
        **kwargs: of Keras.

    Raises:
        UserError: the loss takes probabilities.
    """
    model._has_schedule = False
    given = {"loss": loss, "metrics": metrics} | kwargs
    given = {name: value for name, value in given.items() if value is not None}
    task_models.check_loss(given.get("loss"))

    # XLA would compile a program for each length of a batch.
    usual = {"jit_compile": False, **model._usual_loss()}
    with compiling(model):
        keras.Model.compile(model, optimizer, **(usual | given))


def get_compile_config(model):
    """None without `compile`, as the next `fit` has its own schedule."""
    if model._has_schedule:
        return None
    return keras.Model.get_compile_config(model)


def compile_with_schedule(model, learning_rate: float | None, steps: int):
    """Compiles with the original's optimizer and schedule."""
    forks.check(forks.TENSORFLOW)
    peak = _RATE if learning_rate is None else learning_rate
    schedule = WarmupLinearDecay(peak, steps, int(_WARMUP * steps))

    # The optimizer's variables belong on the devices of the model.
    with compiling(model), model.distribute_strategy.scope():
        keras.Model.compile(
            model,
            AdamWeightDecay(schedule),
            jit_compile=False,
            **model._usual_loss(),
        )


def train(
    model,
    batches,
    epochs: int,
    learning_rate: float | None,
    callbacks=None,
    **kwargs,
):
    """Trains on encoded batches, by the usual schedule without `compile`.

    Args:
        model: the model.
        batches: a dataset of an epoch.
        epochs: passes over it.
        learning_rate: peak of the schedule.
        callbacks, **kwargs: of Keras' `fit`.

    Raises:
        UserError: there is an optimizer besides a rate, the dataset has no
            known size, or a callback changes the rate of a schedule.
    """
    # The schedule ends with the last step, so it needs their number.
    if model._has_schedule:
        steps = kwargs.get("steps_per_epoch") or int(batches.cardinality())
        if steps < 1:
            raise UserError(
                "the size of the dataset is unknown",
                fix="pass steps_per_epoch",
            )
        compile_with_schedule(model, learning_rate, epochs * steps)
    elif learning_rate is not None:
        raise UserError(
            "learning_rate is given, but the model is compiled",
            fix="pass it to the optimizer",
        )

    # Keras refuses only after the epochs of patience.
    rate = model.optimizer._learning_rate
    for callback in keras.tree.flatten(callbacks or []):
        if isinstance(callback, _SET_RATE) and isinstance(rate, _SCHEDULE):
            raise UserError(
                f"{type(callback).__name__}, and a schedule of learning rates",
                expected="one of them",
                fix="call compile first, as in compile("
                "keras.optimizers.Adam(2e-5))",
            )

    # The batches are shuffled.
    return keras.Model.fit(
        model,
        batches,
        epochs=epochs,
        shuffle=False,
        callbacks=callbacks,
        **kwargs,
    )


def train_on_batch(model, x, y, sample_weight=None, **kwargs):
    """Takes a step on texts; see `fit` for the arguments.

    Raises:
        UserError: a text or a label is invalid, or `compile` was not called.
    """
    # The schedule of a `fit` has ended: the step would change nothing.
    if model._has_schedule:
        raise UserError(
            "train_on_batch without an optimizer",
            fix='call compile first, as in compile("adam")',
        )

    batch = row_batches.batch(model._columns(x, y, sample_weight))
    return keras.Model.train_on_batch(model, *batch, **kwargs)


def save(model, filepath, *args, **kwargs) -> None:
    """As in `keras.Model`, to a `.keras` file.

    Raises:
        UserError: it is an HDF5 file, which Keras could not load.
    """
    if os.fspath(filepath).endswith((".h5", ".hdf5")):
        raise UserError(
            "an HDF5 file, which Keras cannot load",
            path=os.fspath(filepath),
            expected="a name that ends in .keras",
        )
    keras.Model.save(model, filepath, *args, **kwargs)


def no_scikit_learn(model):
    """Raises the error of a function of scikit-learn that copies a model."""
    raise UserError(
        f"{type(model).__name__} is a Keras model, not an estimator of "
        "scikit-learn",
        fix="for cross validation, call run_classifier.py --num_folds, or fit "
        "a new model in each fold",
    )


def get_config(model) -> dict:
    """The arguments, with `network` and `vocabulary` for `model`."""
    tokenizer = model.tokenizer
    return {
        "name": model.name,
        "network": keras.saving.serialize_keras_object(model.network),
        "vocabulary": tokenizer.tokens,
        "do_lower_case": tokenizer.do_lower_case,
        "strip_accents": tokenizer.strip_accents,
        "max_length": model.max_length,
        "seed": model.seed,
    }


def from_config(cls, config, custom_objects=None):
    """The model of a `get_config`."""
    config = dict(config)
    network = keras.saving.deserialize_keras_object(
        config.pop("network"), custom_objects
    )
    tokens = config.pop("vocabulary")
    casing = config.pop("do_lower_case"), config.pop("strip_accents")
    tokenizer = Tokenizer("vocab.txt", *casing, tokens=tokens)
    return cls((network, tokenizer), **config)


@contextlib.contextmanager
def source(model, folder: str) -> Iterator[Bert]:
    """Weights, config and tokenizer, for an export to a new folder.

    Raises:
        UserError: the folder is not empty or cannot be written, or the
            weights are quantized.
    """
    outputs.check_new_folder(folder, "pass another folder")
    given = model.tokenizer
    with tempfile.TemporaryDirectory() as scratch:
        # The asset of a SavedModel keeps the name of its file.
        path = os.path.join(scratch, "vocab.txt")
        atomic.write_whole(path, given.content)
        tokenizer = Tokenizer.of(path, given.casing)
        yield encoders.weights_of(
            model.network, tokenizer.with_max_length(model.max_length), folder
        )
