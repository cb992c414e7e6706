"""A classifier of texts: strings in, labels out, as a Keras model."""

import dataclasses
import os
from collections.abc import Mapping

import keras
import numpy as np

from bert.common import extras
from bert.common.errors import UserError
from bert.data.label_kinds import (
    CLASSES,
    MULTI_LABEL,
    PLAIN,
    REGRESSION,
    Decision,
)
from bert.data.sequences import TRUNCATIONS, LongTexts
from bert.data.text.columns import finite
from bert.modeling import task_models
from bert.modeling.formats import conversion
from bert.modeling.formats.conversion_settings import NETWORKS
from bert.models import builders, label_encoder, loading
from bert.models.base import TextModel, length_of
from bert.models.preprocessing import TextBatches
from bert.tasks.classification.pipeline import TextClassification

SAVED_MODEL, ONNX = "tf_saved_model", "onnx"


@keras.saving.register_keras_serializable("bert")
class TextClassifier(TextModel):
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
        network, tokenizer = loading.load_pair(model)

        # The head of the fine-tuned model is kept if its labels are.
        trained = label_encoder.of_encoder(network)
        chosen = label_encoder.chosen(labels, trained, multi_label, regression)
        checkpoint = getattr(network, "checkpoint", None)
        task = getattr(checkpoint, "task", None) or {}
        has_head = "output_weights" in getattr(checkpoint, "values", {})
        if trained and trained != chosen:
            path = network.checkpoint.path
            label_encoder.say_new_head(path, trained, chosen)
            network = builders.new_classifier(network, chosen.size, seed)
        elif not isinstance(network, task_models.Classifier):
            network = builders.classifier(network, chosen.size, seed)

        if truncate not in (None, *TRUNCATIONS):
            raise UserError(
                f"truncate={truncate!r:.60}",
                expected=f"one of {', '.join(TRUNCATIONS)}",
            )
        long_texts = LongTexts.of_task(task)
        if truncate:
            long_texts = dataclasses.replace(long_texts, truncate=truncate)

        usual = task.get("max_seq_length", 128)
        if not task and has_head:  # of Hugging Face, with unnamed labels
            usual = tokenizer.max_length
        length = length_of(network, max_length, usual)
        super().__init__(network, tokenizer, length, seed, **kwargs)
        self.labels = chosen
        self._texts = TextBatches(tokenizer, length, chosen, seed)
        self._set_long_texts(long_texts)

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
        self._set_decision(PLAIN)

        with self._texts.errors():
            return self._train(
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
            self._compile_with_schedule(None, 1)

        batches = self._texts.labeled(
            x, y, sample_weight, batch_size=batch_size
        )
        with self._texts.errors():
            return keras.Model.evaluate(self, batches, **kwargs)

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
        self._set_decision(PLAIN)
        return super().train_on_batch(
            x, y, sample_weight, class_weight=class_weight, **kwargs
        )

    def export(  # type: ignore[override]
        self,
        filepath: str,
        pairs: bool = False,
        openvino: str | None = None,
        texts=None,
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
        if format not in (SAVED_MODEL, ONNX):
            raise UserError(
                f"format={format!r:.60}",
                expected=f"{SAVED_MODEL} or {ONNX}",
            )
        if format == ONNX:
            extras.check(ONNX, *NETWORKS[ONNX], what="format=onnx")
            filepath = os.fspath(filepath)
            with self._source(filepath) as source:
                conversion.convert(source, ONNX, filepath)
            return
        self._write_export(filepath, openvino, texts, pairs=pairs)

    def get_config(self) -> dict:
        """The arguments, with `network` and `vocabulary` for `model`."""
        return super().get_config() | {
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
        model = super().from_config(arguments, custom_objects)
        model._set_long_texts(LongTexts.of_task(config))
        model._set_decision(Decision.of_task(config))
        return model

    def _task(self) -> TextClassification:
        return TextClassification(
            self.tokenizer,
            self.labels,
            self.max_length,
            self.long_texts,
            has_pairs=None,
        )

    def _set_decision(self, decision: Decision) -> None:
        """Changes the post-processing of logits."""
        self.labels = dataclasses.replace(self.labels, decision=decision)
        self._describe()

    def _set_long_texts(self, long_texts: LongTexts) -> None:
        """Changes the truncation or the windows of long texts."""
        self.long_texts = self._texts.long_texts = long_texts
        self._describe()

    def _describe(self) -> None:
        """Records the task in the network, for `bert.save` and exports."""
        self.network.task = {
            "kind": self.labels.kind,
            "labels": list(self.labels.names),
            "max_seq_length": self.max_length,
            "pairs": None,  # texts may be both
            **self.long_texts.described(),
            **self.labels.decision.described(),
        }

    def _default_loss(self) -> dict:
        loss, metrics = task_models.default_loss(
            self.labels.size, self.labels.kind == MULTI_LABEL
        )
        return {"loss": loss, "metrics": metrics}

    def _training_columns(self, x, y, weights) -> tuple:
        return self._texts.columns(x, y, weights)

    def _inputs(self, x) -> list[dict]:
        a, b = self._texts.texts(x)
        return [{"text": x, "text_b": y} for x, y in zip(a, b)]

    def _columns_of(self, predictions: list[dict]) -> dict:
        if self.labels.kind == REGRESSION:
            values = [x["value"] for x in predictions]
            return {"value": np.array(values, np.float32)}
        rows = [[*x["probabilities"].values()] for x in predictions]
        shape = len(rows), self.labels.size
        return {
            "label": [x["label"] for x in predictions],
            "probabilities": np.reshape(np.array(rows, np.float32), shape),
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
        ids = label_encoder.ids(list(weights), self.labels).tolist()
        values = finite(weights.values(), "class_weight")

        # Keras fails at labels after the last one of the dict.
        usual = dict.fromkeys(range(self.labels.size), 1.0)
        return usual | dict(zip(ids, values.tolist()))
