"""Base class of the Keras models that take text."""

import math
import os

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from bert.common import processes
from bert.common.errors import UserError
from bert.data import batching, bucketing, feature_names
from bert.data.records.examples import Examples
from bert.data.sequences import TokenSequence
from bert.data.text.tokenizer import Tokenizer
from bert.inference.predictor import Predictor
from bert.modeling import networks
from bert.modeling.engines.keras_engine import KerasEngine
from bert.models import arguments, compilation, exports, preprocessing
from bert.models.validation import Validation

_CHUNK = 32  # batches of a prediction that are sorted by length together


class TextModel(keras.Model):
    """Keras model that takes text: a network and a tokenizer.

    Base class; use `TextClassifier`, `TokenClassifier` or `QuestionAnswerer`.
    A subclass implements:

    - `_task`: the task of predictions.
    - `_examples`, `_inputs`: arguments -> examples.
    - `_labels_of`: batch -> the labels of `compile`'s loss.
    - `_columns_of`: predictions -> the result of `predict`.

    Args:
        network: keras.Model. Maps token ids to logits; its encoder is named
            "bert".
        tokenizer: Tokenizer. The tokenizer of the encoder.
        max_length: int. Longest sequence in tokens.
        seed: int. Seed of the order of the examples.
        **kwargs: arguments of `keras.Model`.
    """

    _has_schedule = True  # `fit` makes one, until `compile` is called
    _has_weights = False  # whether classes and examples may have weights

    def __init__(
        self,
        network: keras.Model,
        tokenizer: Tokenizer,
        max_length: int,
        seed: int,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.network, self.tokenizer = network, tokenizer
        self.max_length, self.seed = max_length, seed
        self.built = True

    def compile(self, optimizer, loss=None, metrics=None, **kwargs):
        """Configures training, as in `keras.Model`.

        Args:
            optimizer: str or keras.optimizers.Optimizer. Replaces the default
                optimizer and learning-rate schedule of `fit`.
            loss: str, callable or None. Loss, which is called with logits.
                Default: the loss of the task.
            metrics: list or None. Metrics, which are called with logits.
                Default: the metrics of the task.
            **kwargs: arguments of `keras.Model.compile`.

        Raises:
            UserError: The loss or a metric takes probabilities or other labels.
        """
        self._has_schedule = False
        given = {"loss": loss, "metrics": metrics} | kwargs
        given = {name: x for name, x in given.items() if x is not None}
        networks.check_loss(given.get("loss"))
        for name in ("metrics", "weighted_metrics"):
            networks.check_metrics(given.get(name, []))

        # XLA compiles a program for each length, which may take a minute.
        usual = {"jit_compile": False, **self._default_loss()}
        super().compile(optimizer, **(usual | given))
        y, logits = self._zeros()
        compilation.check_losses(self, y, logits)

    def get_compile_config(self):
        """Returns None without `compile`: the next `fit` makes a schedule."""
        return None if self._has_schedule else super().get_compile_config()

    def compile_from_config(self, config):
        """Compiles a loaded model, and builds its optimizer."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def fit(
        self,
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
        """Trains on labelled texts.

        Args:
            x: list, array, column or tuple. The texts, see the class.
            y: list, array or column. The labels, see the class.
            batch_size: int. Number of windows per batch. Every shuffled batch
                is full: the last batch of an epoch is filled with the first
                windows of the next. Default: 32.
            epochs: int. Number of passes over the texts. Default: 1.
            learning_rate: float or None. Peak of the schedule; an error after
                `compile`. Default: 5e-5, as in the original.
            validation_split: float. Fraction of the texts to evaluate on
                after each epoch, taken from the end; ignored if
                `validation_data` is given. Default: 0.
            validation_data: tuple or None. (x, y) to evaluate on after each
                epoch.
            shuffle: bool. Whether to shuffle before each epoch. Default: True.
            callbacks: list or None. Callbacks of Keras. With validation,
                their logs have `val_f1` and the other metrics of `evaluate`.
            **kwargs: arguments of `keras.Model.fit`.

        Returns:
            the `keras.callbacks.History`.

        Raises:
            UserError: A text, a label or an argument is invalid.
        """
        arguments.check_training(epochs, learning_rate)
        arguments.check_unweighted(**kwargs)
        examples, held_out = self._labelled_examples(x, y), None
        if validation_data is not None:
            held_out = self._labelled_examples(*validation_data)
        elif validation_split:
            examples, held_out = preprocessing.split(examples, validation_split)
        return self._train(
            *self._batches(self._encoded(examples), batch_size, shuffle),
            held_out,
            epochs,
            learning_rate,
            callbacks,
            **kwargs,
        )

    def _batches(
        self, examples: Examples, batch_size: int, shuffle: bool
    ) -> tuple[tf.data.Dataset, int]:
        """Makes batches of encoded examples, as in the scripts.

        Returns:
            Infinite batches, and the number of batches in an epoch.
        """
        bucketing.check_size(batch_size)
        lengths, size = self._lengths, min(batch_size, len(examples))
        batches = (
            batching.training_batches(examples, lengths, size, self.seed, 0)
            if shuffle
            else batching.ordered_batches(examples, lengths, size)
        )
        return batches.map(self._divide), math.ceil(len(examples) / size)

    def _encoded(self, rows: list) -> Examples:
        """Encodes labelled examples for training.

        Raises:
            UserError: There are no examples, or none can be learned.
        """
        task = self._task()
        examples = Examples(task.records(rows), task.schema)
        arguments.check_not_empty(len(rows), len(examples))
        return examples

    def _divide(self, batch: dict) -> tuple:
        """Divides a batch into inputs, labels and, if it has any, weights."""
        names = (*feature_names.ENCODER_INPUTS, *feature_names.OF_TEACHER)
        inputs = {name: batch[name] for name in names if name in batch}
        divided = inputs, self._labels_of(batch)
        if feature_names.LABEL_WEIGHTS in batch:
            return *divided, batch[feature_names.LABEL_WEIGHTS]
        return divided

    def evaluate(
        self, x, y, batch_size: int = 32, **kwargs
    ) -> dict[str, float]:
        """Computes the metrics of the script on labelled texts.

        Args:
            x: list, array, column or tuple. The texts, see the class.
            y: list, array or column. The labels, see the class.
            batch_size, **kwargs: see `predict`. No progress bar is shown.

        Returns:
            dict: name -> value of each metric.

        Raises:
            UserError: A text or a label is invalid.
        """
        examples = self._labelled_examples(x, y)
        if not examples:
            raise UserError("no texts", expected="one or more")
        return self._evaluated(examples, batch_size, kwargs)

    def _evaluated(
        self, examples: list, batch_size: int, others: dict
    ) -> dict[str, float]:
        """Scores examples; `others` are further arguments of `evaluate`."""
        others.pop("verbose", None)
        arguments.check_prediction(batch_size, others)
        return self._scores(examples)

    def _scores(self, examples: list) -> dict[str, float]:
        """Scores the predictions of labelled examples."""
        predictor = self._predictor()
        task = predictor.task
        encoded = task.encode(task.inputs_of(examples))
        results = [result for _, result in predictor.compute(encoded)]
        return task.score(examples, encoded, results).metrics

    def predict(
        self, x, batch_size: int = 32, verbose: str | int = "auto", **kwargs
    ) -> dict:
        """Predicts the labels of texts.

        Args:
            x: list, array, column or tuple. The texts, see the class.
            batch_size: int. Examples are sorted by length in chunks of 32
                batches; short examples share a row. Default: 32.
            verbose: str or int. "auto" or 1 shows a progress bar, 0 does not.
                Default: "auto".
            **kwargs: other arguments of Keras are rejected.

        Returns:
            dict: name -> column of predictions, see the class.

        Raises:
            UserError: A text or an argument is invalid, or the outputs for a
                text are not finite.
        """
        arguments.check_prediction(batch_size, kwargs)
        examples = self._inputs(x)
        predictor, size = self._predictor(), _CHUNK * batch_size
        bar = keras.utils.Progbar(
            math.ceil(len(examples) / size),
            verbose=1 if verbose == "auto" else int(verbose),
        )
        predictions: list[dict] = []
        for start in range(0, len(examples), size):
            some = predictor(examples[start : start + size])
            predictions += arguments.check_finite(some, start)
            bar.add(1)
        return self._columns_of(predictions)

    def predict_on_batch(self, x) -> dict:
        """Predicts the labels of one batch of texts; see `predict`."""
        predictions = self._predictor()(self._inputs(x))
        return self._columns_of(arguments.check_finite(predictions))

    def train_on_batch(self, x, y, sample_weight=None, **kwargs):
        """Takes a training step on one batch of texts.

        Args:
            x, y: see `fit`.
            sample_weight: array or None. Weights, in a `TextClassifier`.
            **kwargs: arguments of `keras.Model.train_on_batch`.

        Raises:
            UserError: A text or a label is invalid, or `compile` was not
                called.
        """
        # After `fit`, the learning rate of its schedule is 0.
        if self._has_schedule:
            raise UserError(
                "train_on_batch without an optimizer",
                fix='call compile first, as in compile("adam")',
            )
        processes.check_not_forked(processes.TENSORFLOW)
        if not self._has_weights:
            arguments.check_unweighted(sample_weight=sample_weight, **kwargs)
        examples = self._encoded(self._training_rows(x, y, sample_weight))
        every = np.arange(len(examples))
        batch = batching.batch(examples, self._lengths, every)
        return super().train_on_batch(*self._divide(batch), **kwargs)

    def export(
        self, filepath: str, openvino: str | None = None, texts=None
    ) -> None:
        """Writes the same export as the script, for serving.

        Args:
            filepath: str. Path of a new or empty folder.
            openvino: str or None. Precision of the OpenVINO network:
                "float32", "bfloat16", "int8" or "none". Default: "float32"
                if OpenVINO is installed, else "none".
            texts: list, array, column or tuple. A few hundred training texts,
                which calibrate int8.

        Raises:
            UserError: The folder is not empty or cannot be written, the
                weights are quantized, or a package is missing.
        """
        self._write_export(filepath, openvino, texts)

    def _write_export(self, filepath, openvino, texts, **entries) -> None:
        """Writes an export; `entries` are added to its `task.json`."""
        rows: list[TokenSequence] = []
        if openvino == "int8" and texts is not None:
            encoded = self._task().encode(self._inputs(texts))
            rows = [y for x in encoded for y in x.sequences]
        exports.write(self, os.fspath(filepath), openvino, rows, entries)

    def save(self, filepath, *args, **kwargs) -> None:
        """Saves to a `.keras` file, as in `keras.Model`.

        Args:
            filepath: str. Path, which ends in `.keras`.
            *args, **kwargs: arguments of `keras.Model.save`.

        Raises:
            UserError: The path ends in .h5 or .hdf5. Keras could not load
                such a file.
        """
        if os.fspath(filepath).endswith((".h5", ".hdf5")):
            raise UserError(
                "an HDF5 file, which Keras cannot load",
                path=os.fspath(filepath),
                expected="a name that ends in .keras",
            )
        super().save(filepath, *args, **kwargs)

    def get_config(self) -> dict:
        """Returns the arguments; `network` and `vocabulary` replace `model`."""
        tokenizer = self.tokenizer
        return {
            "name": self.name,
            "network": keras.saving.serialize_keras_object(self.network),
            "vocabulary": tokenizer.tokens,
            "do_lower_case": tokenizer.do_lower_case,
            "strip_accents": tokenizer.strip_accents,
            "max_length": self.max_length,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Creates a model from the result of `get_config`."""
        config = dict(config)
        network = keras.saving.deserialize_keras_object(
            config.pop("network"), custom_objects
        )
        tokens = config.pop("vocabulary")
        casing = config.pop("do_lower_case"), config.pop("strip_accents")
        tokenizer = Tokenizer("vocab.txt", *casing, tokens=tokens)
        return cls((network, tokenizer), **config)

    def __sklearn_clone__(self):
        raise UserError(
            f"{type(self).__name__} is a Keras model, not an estimator of "
            "scikit-learn",
            fix="for cross validation, call run_classifier.py --num_folds, or "
            "fit a new model in each fold",
        )

    __sklearn_tags__ = __sklearn_clone__

    # Methods that subclasses implement.

    def _task(self):
        """Returns the task of predictions, see `inference.predictor.Task`."""
        raise NotImplementedError

    def _describe(self) -> None:
        """Records the task in the network, for `bert.save` and exports."""
        self.network.task = self._task().to_json()

    def _default_loss(self) -> dict:
        """Returns the default loss and metrics, as arguments of `compile`."""
        raise NotImplementedError

    def _zeros(self) -> tuple[NDArray, NDArray]:
        """Returns zeros with the types of labels and logits of a batch."""
        raise NotImplementedError

    def _examples(self, x, y=None) -> list:
        """Checks texts, and labels if given; returns an example for each."""
        raise NotImplementedError

    def _inputs(self, x) -> list[dict]:
        """Checks texts; returns examples for the task."""
        raise NotImplementedError

    def _columns_of(self, predictions: list[dict]) -> dict:
        """Converts predictions of the task to columns."""
        raise NotImplementedError

    def _labels_of(self, batch: dict):
        """Returns the labels of a batch of training, as the loss takes them."""
        return batch[feature_names.LABEL_IDS]

    def _labelled_examples(self, x, y) -> list:
        if y is None:
            raise UserError("y is None", expected="the labels of the texts")
        return self._examples(x, y)

    def _training_rows(self, x, y, weights) -> list:
        """Checks texts and labels for `train_on_batch`."""
        return self._labelled_examples(x, y)

    @property
    def _lengths(self) -> list[int]:
        """Lengths that batches are padded to; XLA compiles each of them."""
        lengths = bucketing.bucket_lengths(self.max_length)
        if self.compiled and self.jit_compile:
            return bucketing.xla_lengths(lengths)
        return lengths

    def _predictor(self) -> Predictor:
        """Returns a predictor with the current weights."""
        task, network = self._task(), self.network
        engine = KerasEngine.of(
            network.get_layer("bert"), network.get_layer(task.head)
        )
        return Predictor(task, engine)

    def _train(
        self,
        batches: tf.data.Dataset,
        steps: int | None,
        held_out: list | None,
        epochs: int,
        learning_rate: float | None,
        callbacks=None,
        steps_per_epoch: int | None = None,
        rule: str = "bert_adam",
        **kwargs,
    ):
        """Trains on encoded batches; without `compile`, with a schedule.

        Args:
            batches: tf.data.Dataset. Batches of inputs, labels and weights.
            steps: int or None. Number of batches in an epoch; None if the
                dataset ends with an epoch.
            held_out: list or None. Labelled examples to evaluate on after each
                epoch.
            epochs: int. Number of passes over the dataset.
            learning_rate: float or None. Peak of the schedule.
            rule: str. Update of the optimizer without `compile`, a key of
                `optimization.RULES`. Default: "bert_adam".
            callbacks, steps_per_epoch, **kwargs: arguments of
                `keras.Model.fit`.

        Raises:
            UserError: A learning rate is given to a compiled model, the size
                of the dataset is unknown, or a callback sets the learning
                rate of a schedule.
        """
        # The schedule ends at the last step, so it needs the number of steps.
        steps = steps_per_epoch or steps
        if self._has_schedule:
            all_steps = epochs * (steps or compilation.num_batches(batches))
            # The optimizer's variables must be on the devices of the model.
            with self.distribute_strategy.scope():
                optimizer = compilation.default_optimizer(
                    learning_rate, all_steps, rule
                )
                loss = self._default_loss()
                super().compile(optimizer, jit_compile=False, **loss)
        elif learning_rate is not None:
            raise UserError(
                "learning_rate is given, but the model is compiled",
                fix="pass it to the optimizer",
            )

        callbacks = keras.tree.flatten(callbacks or [])
        compilation.check_callbacks(callbacks, self.optimizer)
        if held_out is not None:
            callbacks = [Validation(held_out), *callbacks]

        # The batches are shuffled already.
        return super().fit(
            batches,
            epochs=epochs,
            steps_per_epoch=steps,
            shuffle=False,
            callbacks=callbacks,
            **kwargs,
        )
