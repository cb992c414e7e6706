"""A classifier of texts: strings in, labels out, as a Keras model."""

import dataclasses
import itertools
import os
from collections.abc import Mapping

import keras
import numpy as np

from bert import encoders, heads, row_batches, text_labels, text_model
from bert.common import extras, flags
from bert.common.errors import UserError
from bert.data import label_kinds
from bert.data.label_kinds import (
    CLASSES,
    MULTI_LABEL,
    PLAIN,
    REGRESSION,
    Decision,
)
from bert.data.sequences import TRUNCATIONS, LongTexts
from bert.data.text.columns import finite
from bert.modeling import openvino_network, task_models
from bert.modeling.formats import conversion
from bert.modeling.formats.conversion_settings import NETWORKS
from bert.modeling.task_models import Classifier
from bert.serving import export_folder, graphs, openvino_export
from bert.tasks.classification import export
from bert.tasks.classification.settings import Settings
from bert.text_batches import TextBatches

SAVED_MODEL, ONNX = "tf_saved_model", "onnx"


@keras.saving.register_keras_serializable("bert")
class TextClassifier(keras.Model):
    """An encoder with a classifier that takes strings.

        model = bert.TextClassifier("model", labels=["ham", "spam"])
        model.fit(["you won", "see you"], ["spam", "ham"], epochs=3)
        model.predict(["win a prize now"])["label"]  # ["spam"]

    Texts are strings in a list, an array, a column or a table of one column;
    or a tuple of two of them, for pairs. Labels are names, or the numbers
    from 0 of names that are no numbers; for `multi_label`, a list of names or
    a row of 0 and 1 for each text, in a table if 0 and 1 are names; for
    `regression`, any numbers. A
    `tf.data.Dataset` holds batches of `(texts, labels)` or
    `((texts, second_texts), labels)`.

    Without `compile`, `fit` takes the original's optimizer, and its schedule
    for the number of steps that it will take.

    Args:
        model: path or name of a model, as for `load_encoder`; or its encoder
            and tokenizer.
        labels: names of the labels, in order; a number or a bool, such as 1
            or True, has the name "1" or "True". None: those that the model
            was fine-tuned with; other names or another kind get a new head.
        multi_label: a text may have several labels, or none.
        regression: the labels are numbers.
        max_length: longer texts are truncated, in tokens; None: as in its
            fine-tuning, else 128, or all positions of a smaller model.
        truncate: what is kept of them: head, tail, or head_tail, the first
            quarter and the end; None: as in its fine-tuning, else head.
        seed: of the head's initial weights, and of the order of the texts.

    Attributes:
        network: the model of `bert.classifier`, from ids to logits. Its layer
            "bert" is the encoder, for `enable_lora` and `quantize`.
        tokenizer: a `bert.Tokenizer`.
        labels: kind and names of the labels.
        long_texts: what is read of long texts. Windows, if the model was
            fine-tuned with them, are those of predictions and of the export:
            `fit` and `evaluate` truncate.

    Raises:
        UserError: an argument is invalid, or the model cannot be loaded.
    """

    _has_schedule = True  # of each `fit`, until `compile` is called

    def __init__(
        self,
        model,
        labels: list | None = None,
        *,
        multi_label: bool = False,
        regression: bool = False,
        max_length: int | None = None,
        truncate: str | None = None,
        seed: int = 12345,
        **kwargs,
    ):
        super().__init__(**kwargs)
        network, self.tokenizer = encoders.load_pair(model)

        # The head of the fine-tuned model is kept if its labels are.
        trained = text_labels.of_encoder(network)
        self.labels = text_labels.chosen(
            labels, trained, multi_label, regression
        )
        task = getattr(getattr(network, "checkpoint", None), "task", None) or {}
        if trained and trained != self.labels:
            path = network.checkpoint.path
            text_labels.say_new_head(path, trained, self.labels)
            network = heads.new_classifier(network, self.labels.size, seed)
        elif not isinstance(network, Classifier):
            network = heads.classifier(network, self.labels.size, seed)
        self.network, self.seed = network, seed

        if truncate not in (None, *TRUNCATIONS):
            raise UserError(
                f"truncate={truncate!r:.60}",
                expected=f"one of {', '.join(TRUNCATIONS)}",
            )
        long_texts = LongTexts.of_task(task)
        if truncate:
            long_texts = dataclasses.replace(long_texts, truncate=truncate)

        usual = task.get("max_seq_length", 128)
        self.max_length = text_model.length(network, max_length, usual)
        network.task = {  # for `bert.save`
            "kind": self.labels.kind,
            "labels": list(self.labels.names),
            "max_seq_length": self.max_length,
            **self.labels.decision.described(),
        }

        self._texts = TextBatches(
            self.tokenizer, self.max_length, self.labels, seed
        )
        self._read(long_texts)
        self.jit_compile = False  # else each length is compiled
        self.built = True

    def call(self, inputs, training=False):
        """The encoder's inputs, int32 [B, S] -> logits, float32 [B, C]."""
        return self.network(inputs, training=training)["logits"]

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
            class_weight: name or number of a label -> weight of its texts;
                default: 1.
            sample_weight: weights of the texts, [N].
            **kwargs: of Keras.

        Returns:
            the `keras.callbacks.History`.

        Raises:
            UserError: a text, a label or an argument is invalid.
        """
        columns = x, y, sample_weight
        if validation_split:
            batches, validation_data = self._texts.split(
                *columns, validation_split, batch_size, shuffle
            )
        else:
            batches = self._texts.labeled(
                *columns, batch_size=batch_size, shuffle=shuffle
            )

        if validation_data is not None:
            if not isinstance(validation_data, tuple):
                validation_data = (validation_data,)
            validation_data = self._texts.labeled(
                *validation_data, batch_size=batch_size
            )
        if class_weight:
            class_weight = self._class_weight(class_weight)

        # Cuts and a temperature are those of the weights before.
        self._decide(PLAIN)

        with self._texts.errors():
            return text_model.train(
                self,
                batches,
                epochs,
                learning_rate,
                validation_data=validation_data,
                class_weight=class_weight,
                **kwargs,
            )

    def evaluate(
        self, x, y=None, batch_size: int = 32, sample_weight=None, **kwargs
    ):
        """Loss and metrics of labeled texts; see `fit` for the arguments."""
        # No step is taken, so any schedule will do.
        if not self.compiled:
            text_model.compile_with_schedule(self, None, 1)

        batches = self._texts.labeled(
            x, y, sample_weight, batch_size=batch_size
        )
        with self._texts.errors():
            return super().evaluate(batches, **kwargs)

    def predict(self, x, batch_size: int = 32, **kwargs) -> dict:
        """Predicts the labels of texts.

        Args:
            x: the texts; labels of a dataset are ignored.
            batch_size: B; a dataset has its own.
            **kwargs: of Keras.

        Returns:
            label, a list of N names, or of N lists of names for
            `multi_label`, and probabilities, float32 [N, C]; for
            `regression`, value, float32 [N]. A label that is too improbable
            is None.

        Raises:
            UserError: a text is invalid.
        """
        batches, of_texts = self._texts.unlabeled(x, batch_size)

        # Keras does not predict nothing.
        logits = np.zeros((0, self.labels.size), np.float32)
        if int(batches.cardinality()) != 0:
            with self._texts.errors(), text_model.compiling(self):
                logits = super().predict(batches, **kwargs)
            logits = of_texts(logits)

        return self._answers(logits)

    def train_on_batch(
        self, x, y, sample_weight=None, class_weight=None, **kwargs
    ):
        """Takes a step on texts; see `fit` for the arguments.

        Raises:
            UserError: a text or a label is invalid, or `compile` was not
                called.
        """
        if class_weight:
            class_weight = self._class_weight(class_weight)
        self._decide(PLAIN)
        return text_model.train_on_batch(
            self, x, y, sample_weight, class_weight=class_weight, **kwargs
        )

    def predict_on_batch(self, x) -> dict:
        """The answers of `predict` for one batch of texts, at once."""
        windows = self._texts.windows(x)
        if not windows:
            return self.predict([])
        rows = [*itertools.chain.from_iterable(windows)]
        inputs, *_ = row_batches.batch((rows,))
        with text_model.compiling(self):
            logits = super().predict_on_batch(inputs)
        counts = [*map(len, windows)]
        return self._answers(self.long_texts.pooled(logits, counts))

    def export(
        self,
        filepath: str,
        pairs: bool = False,
        openvino: str | None = None,
        texts=(),
        format: str = SAVED_MODEL,
    ) -> None:
        """Writes the SavedModel that run_classifier.py writes.

        Args:
            filepath: a new or empty folder.
            pairs: whether it takes pairs of texts.
            openvino: precision of a network in `filepath/openvino`, which is
                asked without TensorFlow: float32, bfloat16 or int8.
            texts: for int8, a few hundred texts of training, as for `fit`.
            format: "tf_saved_model"; or "onnx", the network alone, as
                convert_checkpoint.py writes it.

        Raises:
            UserError: the folder is not empty or cannot be written, the
                weights are quantized, or a package is missing.
        """
        filepath = os.fspath(filepath)
        openvino_network.check(openvino, "openvino", len(texts))
        if format not in (SAVED_MODEL, ONNX):
            raise UserError(
                f"format={format!r:.60}",
                expected=f"{SAVED_MODEL} or {ONNX}",
            )
        if format == ONNX:
            extras.check(ONNX, *NETWORKS[ONNX], what="format=onnx")
            with text_model.source(self, filepath) as source:
                conversion.convert(source, ONNX, filepath)
            return

        settings = flags.replace(Settings(), max_seq_length=self.max_length)
        rows = self._texts.rows(texts) if openvino == "int8" else ()
        with text_model.source(self, filepath) as source:
            source.task = source.task | {"pairs": pairs}
            classifier = export.Classifier(
                source,
                settings,
                self.labels,
                pairs,
                source.values,
                self.long_texts,
            )

            def save(folder):
                graphs.save(classifier, folder, "tokens", "examples")
                if openvino:
                    openvino_export.write(folder, source, openvino, rows)

            export_folder.write(filepath, save)

    def get_config(self) -> dict:
        """The arguments, with `network` and `vocabulary` for `model`."""
        return text_model.get_config(self) | {
            "labels": list(self.labels.names),
            "multi_label": self.labels.kind == MULTI_LABEL,
            "regression": self.labels.kind == REGRESSION,
            "truncate": self.long_texts.truncate,
            **self.long_texts.described(),
            **self.labels.decision.described(),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """The model of a `get_config`."""
        answered = "decision", "windows"
        arguments = {k: x for k, x in config.items() if k not in answered}
        model = text_model.from_config(cls, arguments, custom_objects)
        model._read(LongTexts.of_task(config))
        model._decide(Decision.of_task(config))
        return model

    __sklearn_clone__ = __sklearn_tags__ = text_model.no_scikit_learn
    save = text_model.save
    compile = text_model.compile_model
    compile_from_config = Classifier.compile_from_config
    get_compile_config = text_model.get_compile_config

    def _decide(self, decision: Decision) -> None:
        """Changes what answers are made of."""
        self.labels = dataclasses.replace(self.labels, decision=decision)
        task = {k: x for k, x in self.network.task.items() if k != "decision"}
        self.network.task = task | decision.described()

    def _read(self, long_texts: LongTexts) -> None:
        """Changes what is read of long texts."""
        self.long_texts = self._texts.long_texts = long_texts
        changed = "truncate", "windows"
        task = {k: x for k, x in self.network.task.items() if k not in changed}
        self.network.task = task | long_texts.described()

    def _usual_loss(self) -> dict:
        loss, metrics = task_models.default_loss(
            self.labels.size, self.labels.kind == MULTI_LABEL
        )
        return {"loss": loss, "metrics": metrics}

    def _columns(self, x, y, weights) -> tuple:
        return self._texts.columns(x, y, weights)

    def _answers(self, logits: np.ndarray) -> dict:
        """Answers of the kind of the labels, of logits [N, C]."""
        kind = self.labels.kind
        if kind == REGRESSION:
            return {export.VALUE: logits[:, 0]}

        names, decision = self.labels.names, self.labels.decision
        ids = label_kinds.answers(logits, kind, decision)
        if kind == MULTI_LABEL:  # rows of truth values, no ids
            answers = [list(itertools.compress(names, row)) for row in ids]
        else:
            unknown = label_kinds.unknown(logits, decision)
            answers = [
                None if is_unknown else names[i]
                for i, is_unknown in zip(ids, unknown)
            ]
        return {
            export.LABEL: answers,
            export.PROBABILITIES: label_kinds.probabilities(
                logits, kind, decision
            ),
        }

    def _class_weight(self, weights: dict) -> dict[int, float]:
        """Converts names of labels, or their numbers, to their numbers."""
        kind = self.labels.kind
        if kind != CLASSES:
            raise UserError(
                f"class_weight is given for labels of the kind {kind}",
                fix="pass sample_weight",
            )
        if not isinstance(weights, Mapping):
            raise UserError(
                f"class_weight={weights!r:.60}",
                expected="a dict of names and weights, as "
                "{" + f"{self.labels.names[0]!r}: 2.0" + "}",
            )
        ids = text_labels.ids(list(weights), self.labels).tolist()
        values = finite(weights.values(), "class_weight")

        # Keras fails at labels after the last one of the dict.
        usual = dict.fromkeys(range(self.labels.size), 1.0)
        return usual | dict(zip(ids, values.tolist()))
