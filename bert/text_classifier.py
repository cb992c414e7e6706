"""A classifier of texts: strings in, labels out, as a Keras model."""

import itertools
import math
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

from bert import encoders, heads
from bert.common import flags, storage
from bert.common.errors import UserError
from bert.data import batching, features
from bert.data.text.tokenizer import Tokenizer, strings
from bert.modeling.task_models import Classifier
from bert.serving import export_folder, graphs
from bert.tasks.classification import answers, export, metrics
from bert.tasks.classification.examples import (
    CLASSES,
    MULTI_LABEL,
    REGRESSION,
    Labels,
)
from bert.tasks.classification.settings import Settings
from bert.training.optimization import AdamWeightDecay, WarmupLinearDecay

_RATE, _WARMUP = 5e-5, 0.1  # of the original; warm-up as a share of the steps


@keras.saving.register_keras_serializable("bert")
class TextClassifier(keras.Model):
    """An encoder with a classifier that takes strings.

        model = bert.TextClassifier("model", labels=["ham", "spam"])
        model.fit(["you won", "see you"], ["spam", "ham"], epochs=3)
        model.predict(["win a prize now"])["label"]  # ["spam"]

    Texts are strings in a list, an array or a column of a table; or a tuple
    of two such columns, for pairs of texts. Labels are names or numbers from
    0; for `multi_label`, a list of names or a row of 0 and 1 for each text;
    for `regression`, any numbers. A `tf.data.Dataset` holds batches of
    `(texts, labels)` or `((texts, second_texts), labels)`.

    Without `compile`, `fit` takes the original's optimizer, and its schedule
    for the number of steps that it will take.

    Args:
        model: path or name of a model, as for `load_encoder`; or its encoder
            and tokenizer.
        labels: names of the labels, in order; None: those that the model was
            fine-tuned with.
        multi_label: a text may have several labels, or none.
        regression: the labels are numbers.
        max_length: longer texts are truncated, in tokens; None: 128, or all
            positions of a smaller model.
        seed: of the head's initial weights, and of the order of the texts.

    Attributes:
        network: the model of `bert.classifier`, from ids to logits. Its layer
            "bert" is the encoder, for `enable_lora` and `quantize`.
        tokenizer: a `bert.Tokenizer`.
        labels: kind and names of the labels.

    Raises:
        UserError: an argument is invalid, or the model cannot be loaded.
    """

    def __init__(
        self,
        model,
        labels: list[str] | None = None,
        *,
        multi_label: bool = False,
        regression: bool = False,
        max_length: int | None = None,
        seed: int = 12345,
        **kwargs,
    ):
        super().__init__(**kwargs)
        network, self.tokenizer = encoders.load_pair(model)
        self.labels = _labels(network, labels, multi_label, regression)
        if not isinstance(network, Classifier):
            network = heads.classifier(network, self.labels.size, seed)
        self.network, self.seed = network, seed
        longest = encoders.config_of(network).max_position_embeddings
        self.max_length = max_length or min(128, longest)
        if not 3 <= self.max_length <= longest:
            raise UserError(
                f"max_length={max_length}", expected=f"3 to {longest}"
            )
        self._has_schedule = True  # until `compile` is called
        self.jit_compile = False  # else each length is compiled
        self.built = True

    def call(self, inputs, training=False):
        """The encoder's inputs, int32 [B, S] -> logits, float32 [B, C]."""
        return self.network(inputs, training=training)["logits"]

    def compile(self, optimizer, loss=None, metrics=None, **kwargs):
        """As in `keras.Model`, with the loss of the labels by default.

        Args:
            optimizer: the optimizer; `fit` keeps it.
            loss: of logits, [B, C]; None: cross-entropy, or the squared
                error of regression.
            metrics: of logits; None: accuracy, but of regression.
            **kwargs: of Keras.
        """
        kind, default = self.labels.kind, None
        if kind == CLASSES:
            losses, default = keras.losses.SparseCategoricalCrossentropy, "acc"
        elif kind == MULTI_LABEL:
            losses = keras.losses.BinaryCrossentropy
            default = keras.metrics.BinaryAccuracy("acc", threshold=0.0)
        if loss is None:
            loss = "mse" if kind == REGRESSION else losses(from_logits=True)
        if metrics is None and default:
            metrics = [default]
        kwargs.setdefault("jit_compile", False)
        super().compile(optimizer, loss, metrics=metrics, **kwargs)
        self._has_schedule = False

    def fit(
        self,
        x,
        y=None,
        batch_size: int = 32,
        epochs: int = 1,
        *,
        learning_rate: float | None = None,
        validation_split: float = 0.0,
        validation_data=None,
        shuffle: bool = True,
        class_weight: dict | None = None,
        sample_weight=None,
        **kwargs,
    ):
        """Trains on texts.

        Args:
            x: the texts.
            y: the labels; None if `x` is a dataset.
            batch_size: B; a dataset has its own. Every batch is full: the last
                one of an epoch takes the first texts of the next.
            epochs: passes over the texts.
            learning_rate: peak of the schedule, without `compile`; default:
                5e-5, as in the original.
            validation_split: share of the texts, the last ones, to evaluate
                on after each epoch.
            validation_data: (texts, labels), (texts, labels, weights) or a
                dataset.
            shuffle: draw another order in each epoch.
            class_weight: name or number of a label -> weight of its texts.
            sample_weight: weights of the texts, [N].
            **kwargs: of Keras.

        Returns:
            the `keras.callbacks.History`.

        Raises:
            UserError: a text, a label or an argument is invalid.
        """
        if validation_split:
            (x, y, sample_weight), validation_data = _split(
                (x, y, sample_weight), validation_split
            )
        batches = self._batches(x, y, sample_weight, batch_size, shuffle)
        if validation_data is not None:
            if not isinstance(validation_data, tuple):
                validation_data = (validation_data,)
            validation_data = self._batches(
                *validation_data, batch_size=batch_size
            )
        if class_weight:
            kind = self.labels.kind
            if kind != CLASSES:
                raise UserError(
                    f"class_weight for {kind}", fix="pass sample_weight"
                )
            ids = self._ids(class_weight).tolist()
            class_weight = dict(zip(ids, class_weight.values()))
        if self._has_schedule:
            steps = kwargs.get("steps_per_epoch") or int(batches.cardinality())
            if steps < 1:
                raise UserError(
                    "a dataset of unknown size", fix="pass steps_per_epoch"
                )
            self._compile(learning_rate or _RATE, epochs * steps)
        elif learning_rate:
            raise UserError("learning_rate", fix="pass it to the optimizer")
        return super().fit(
            batches,
            epochs=epochs,
            validation_data=validation_data,
            class_weight=class_weight,
            shuffle=False,  # the batches are
            **kwargs,
        )

    def evaluate(
        self, x, y=None, batch_size: int = 32, sample_weight=None, **kwargs
    ):
        """Loss and metrics of labeled texts; see `fit` for the arguments."""
        if not self.compiled:
            self._compile(_RATE, 1)
        batches = self._batches(x, y, sample_weight, batch_size)
        return super().evaluate(batches, **kwargs)

    def predict(self, x, batch_size: int = 32, **kwargs) -> dict:
        """Predicts the labels of texts.

        Args:
            x: the texts; labels of a dataset are ignored.
            batch_size: B; a dataset has its own.
            **kwargs: of Keras.

        Returns:
            label, a list of N names, joined by commas for `multi_label`, and
            probabilities, float32 [N, C]; for `regression`, value, float32
            [N].

        Raises:
            UserError: a text is invalid.
        """
        if isinstance(x, tf.data.Dataset):
            logits = super().predict(self._batches(x), **kwargs)
        else:
            (rows,) = self._columns(x)
            order = np.argsort([len(ids) for ids, _ in rows])
            chosen = np.split(order, range(batch_size, len(rows), batch_size))
            batches = self._dataset(
                lambda: (_batch((rows,), x) for x in chosen), 1, len(chosen)
            )
            logits = super().predict(batches, **kwargs)[np.argsort(order)]
        kind = self.labels.kind
        if kind == REGRESSION:
            return {export.VALUE: logits[:, 0]}
        return {
            export.LABEL: answers.names_of(logits, self.labels),
            export.PROBABILITIES: metrics.probabilities(logits, kind),
        }

    def export(self, filepath: str, pairs: bool = False) -> None:
        """Writes the SavedModel that run_classifier.py writes.

        Args:
            filepath: a new or empty folder.
            pairs: whether it takes pairs of texts.

        Raises:
            UserError: the folder cannot be written, or the weights are
                quantized.
        """
        settings = flags.replace(Settings(), max_seq_length=self.max_length)
        given = self.tokenizer
        casing = given.do_lower_case, given.strip_accents
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "vocab.txt")
            storage.write_whole(path, given.content)
            source = encoders.weights_of(
                self.network, Tokenizer(path, *casing), os.fspath(filepath)
            )
            classifier = export.Classifier(
                source, settings, self.labels, pairs, source.values
            )
            export_folder.write(
                os.fspath(filepath),
                lambda x: graphs.save(classifier, x, "tokens", "examples"),
            )

    def get_config(self) -> dict:
        """The arguments, with `network` and `vocabulary` for `model`."""
        tokenizer, kind = self.tokenizer, self.labels.kind
        return {
            "name": self.name,
            "network": keras.saving.serialize_keras_object(self.network),
            "vocabulary": tokenizer.tokens,
            "do_lower_case": tokenizer.do_lower_case,
            "strip_accents": tokenizer.strip_accents,
            "labels": list(self.labels.names),
            "multi_label": kind == MULTI_LABEL,
            "regression": kind == REGRESSION,
            "max_length": self.max_length,
            "seed": self.seed,
        }

    @classmethod
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

    compile_from_config = Classifier.compile_from_config

    def get_compile_config(self):
        """None without `compile`, as the next `fit` has its own schedule."""
        return None if self._has_schedule else super().get_compile_config()

    def _compile(self, learning_rate: float, steps: int) -> None:
        """Compiles with the original's optimizer and schedule."""
        schedule = WarmupLinearDecay(learning_rate, steps, int(_WARMUP * steps))
        with self.distribute_strategy.scope():
            self.compile(AdamWeightDecay(schedule))
        self._has_schedule = True

    def _batches(
        self, x, y=None, weights=None, batch_size: int = 32, shuffle=False
    ) -> tf.data.Dataset:
        """Batches of the encoder's inputs, and of ids of labels and weights.

        The shuffled ones are those of the scripts.
        """
        if isinstance(x, tf.data.Dataset):
            return self._encoded(x)
        columns = self._columns(x, y, weights)
        lengths = np.array([len(ids) for ids, _ in columns[0]])
        count = len(lengths)
        size = min(batch_size, count)
        steps, epochs = math.ceil(count / size), itertools.count()

        def batches():
            chosen = np.split(np.arange(count), range(size, count, size))
            if shuffle:
                step = next(epochs) * steps
                order = batching.choose(count, lengths, size, self.seed, step)
                chosen = itertools.islice(order, steps)
            for rows in chosen:
                yield _batch(columns, rows)

        return self._dataset(batches, len(columns), steps)

    def _encoded(self, x: tf.data.Dataset) -> tf.data.Dataset:
        """Converts a dataset of batches of strings, and perhaps of labels."""
        spec = x.element_spec if isinstance(x.element_spec, tuple) else (0,)
        if isinstance(spec[0], dict):
            return x  # of `fit`, for its validation

        def batches():
            for element in x.as_numpy_iterator():
                texts, *others = element if len(spec) > 1 else (element,)
                texts = texts if isinstance(texts, tuple) else (texts,)
                decoded = tuple(_decoded(column) for column in texts)
                if others and others[0].dtype == object:
                    others[0] = _decoded(others[0])
                columns = self._columns(decoded, *others)
                yield _batch(columns, np.arange(len(columns[0])))

        return self._dataset(batches, len(spec), int(x.cardinality()))

    def _dataset(self, batches, size: int, steps: int) -> tf.data.Dataset:
        """A dataset of the first 1, 2 or 3 of inputs, labels and weights."""
        kind = self.labels.kind
        shape = [None, self.labels.size] if kind == MULTI_LABEL else [None]
        inputs = tf.TensorSpec([None, None], tf.int32)
        signature = (
            dict.fromkeys(features.ENCODER_INPUTS, inputs),
            tf.TensorSpec(shape, tf.int32 if kind == CLASSES else tf.float32),
            tf.TensorSpec([None], tf.float32),
        )[:size]
        dataset = tf.data.Dataset.from_generator(
            batches, output_signature=signature
        )
        if steps >= 0:
            size = tf.data.experimental.assert_cardinality(steps)
            dataset = dataset.apply(size)
        return dataset.prefetch(2)

    def _columns(self, x, y=None, weights=None) -> tuple:
        """Ids of the texts, and labels and weights that are not None."""
        texts = x if isinstance(x, tuple) else (x,)
        a, *b = (strings(column, "texts") for column in texts)
        columns = [] if y is None else [self._ids(y)]
        if weights is not None:
            columns.append(np.asarray(weights, np.float32))
        sizes = [len(column) for column in (a, *b, *columns)]
        if set(sizes) != {max(1, len(a))}:
            raise UserError(
                f"{' and '.join(map(str, sizes))} rows",
                expected="as many labels as texts, and one or more",
            )
        b = b[0] if b else [""] * len(a)
        return self.tokenizer.rows(a, b, self.max_length), *columns

    def _ids(self, labels) -> np.ndarray:
        """Labels -> ids, int32 [N]; 0 and 1, float32 [N, C]; float32 [N]."""
        names, kind = self.labels.names, self.labels.kind
        if kind == REGRESSION:
            return np.asarray(labels, np.float32)

        def number(label) -> int:
            is_name = isinstance(label, str) and label in names
            found = names.index(label) if is_name else label
            if found not in range(len(names)):
                raise UserError(
                    f"the label {label!r:.60}",
                    expected=f"one of {', '.join(names)}",
                )
            return int(found)

        if kind == CLASSES:
            return np.array([number(label) for label in labels], np.int32)
        ids = np.zeros((len(labels), len(names)), np.float32)
        for row, chosen in zip(ids, labels):
            if len(chosen) == len(names) and set(chosen) <= {0, 1}:
                row[:] = chosen
            else:
                row[[number(label) for label in chosen]] = 1.0
        return ids


def _labels(network, names, multi_label: bool, regression: bool) -> Labels:
    """The labels of the arguments, or those of a fine-tuned model."""
    task = getattr(getattr(network, "checkpoint", None), "task", None)
    if regression:
        return Labels(REGRESSION)
    if names is None:
        if not task or task["kind"] not in (CLASSES, MULTI_LABEL, REGRESSION):
            raise UserError("no labels", fix="pass their names")
        return Labels(task["kind"], tuple(task["labels"]))
    names = tuple(map(str, names))
    if len(set(names)) < max(len(names), 2 - multi_label):
        raise UserError(
            f"labels={list(names)!r:.60}", expected="two or more names, once"
        )
    return Labels(MULTI_LABEL if multi_label else CLASSES, names)


def _batch(columns: tuple, chosen: np.ndarray) -> tuple:
    """Some rows of the columns; the encoder's inputs for ids of texts."""
    rows = [columns[0][i] for i in chosen]
    inputs = batching.pad(rows, max(len(ids) for ids, _ in rows))
    return inputs, *(column[chosen] for column in columns[1:])


def _decoded(texts: np.ndarray) -> list[str]:
    return [text.decode(errors="replace") for text in texts]


def _split(columns: tuple, share: float) -> tuple:
    """Splits texts, labels and weights into training and validation."""
    if isinstance(columns[0], tf.data.Dataset):
        raise UserError("validation_split", fix="pass validation_data")
    count = len(columns[1])
    at = math.floor(count * (1.0 - share))
    if not 0 < at < count:
        raise UserError(
            f"validation_split={share} of {count} texts",
            expected="texts on both sides",
        )

    def rows(column, part):
        if isinstance(column, tuple):  # pairs of texts
            return tuple(rows(x, part) for x in column)
        return column if column is None else list(column)[part]

    return tuple(
        tuple(rows(column, part) for column in columns)
        for part in (slice(at), slice(at, None))
    )
