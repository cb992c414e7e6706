"""Text classification as a Keras model: strings in, labels out."""

import dataclasses
import os

import keras
import numpy as np
import tensorflow as tf
from keras import ops
from numpy.typing import NDArray

from bert.common.errors import UserError
from bert.data import bucketing, feature_names
from bert.data.labels import (
    CLASSES,
    MULTI_LABEL,
    PLAIN,
    REGRESSION,
    PostProcessing,
)
from bert.data.records.encoding import Feature
from bert.data.records.examples import Examples
from bert.data.sequences import TRUNCATIONS, LongTexts
from bert.inference import frozen_features
from bert.modeling import checkpoints, networks, task_losses
from bert.modeling.task_heads import CLASSIFIER
from bert.models import (
    arguments,
    builders,
    classifier_teacher,
    exports,
    label_encoder,
    loading,
    preprocessing,
)
from bert.models.base import TextModel
from bert.models.preprocessing import TextBatches
from bert.tasks import recipe
from bert.tasks.classification.files import TextExample
from bert.tasks.classification.task import TextClassification
from bert.tasks.recipe import Recipe

SAVED_MODEL, ONNX = "tf_saved_model", exports.ONNX


@keras.saving.register_keras_serializable("bert")
class TextClassifier(TextModel):
    """Text classifier: an encoder with a classification head, for strings.

    Fine-tunes BERT on raw text and predicts single labels, multiple labels or
    numbers. For inputs of token ids use `bert.classifier`; for training from
    the shell use run_classifier.py, which writes the same export.

        model = bert.TextClassifier("model", labels=["ham", "spam"])
        texts, labels = ["you won", "see you"], ["spam", "ham"]
        model.fit(texts, labels, epochs=3)
        model.predict(["win a prize now"])["label"]  # ["spam"]
        model.evaluate(texts, labels, return_dict=True)["accuracy"]  # 1.0
        model.save("mails.keras")  # keras.saving.load_model loads it

    Texts are a list, an array or a column of strings, or a tuple of two of
    these for pairs of texts. Labels are class names, or class indices if no
    class name is numeric. With `multi_label`, the labels of a text are a list
    of names, or a row of 0 and 1. If the class names are 0 and 1, such rows
    must be an array or a table. With `regression`, labels are numbers. A
    `tf.data.Dataset` has batches of `(texts, labels)` or
    `((texts, second_texts), labels)`.

    `predict` returns a dict with:

    - label: a list of N predictions. A name each, or None below the
      minimum probability recorded in the model; with `multi_label`, a list
      of names each.
    - probabilities: float32 [N, C].

    With `regression`, the dict has only value: float32 [N].

    Without a call of `compile`, `fit` chooses the optimizer, see `recipe`.
    Its learning rate warms up, then decays to 0 at the last step.

    Args:
        model: str or (Encoder, Tokenizer). Path or name of a model, such as
            "hf://google-bert/bert-base-uncased", see `load_encoder`.
        labels: list of str, int or bool, or None. Class names, in the order
            of the logits; 1 and True become "1" and "True". Other labels than
            the model was fine-tuned with get a new head with random weights.
            Default: the labels that the model was fine-tuned with.
        multi_label: bool. Whether a text may have any number of labels.
            Default: False.
        regression: bool. Whether the labels are numbers. Default: False.
        max_length: int or None. Longest input in tokens; longer texts are
            truncated. Default: as in the fine-tuning of the model, else
            128, or fewer if the model has fewer positions.
        truncate: str or None. Part of a long text to keep: "head", "tail" or
            "head_tail", the first quarter and the end. Default: as in the
            fine-tuning of the model, else "head".
        seed: int. Seed of the initial weights of the head, and of the order
            of the texts. Default: 12345.
        **kwargs: arguments of `keras.Model`.

    Attributes:
        recipe: Recipe. Settings of the last `fit`.
        network: the model of `bert.classifier`, from token ids to logits. Its
            layer "bert" is the encoder, for `enable_lora` and `quantize`.
        tokenizer: Tokenizer. The tokenizer of the encoder.
        labels: kind and names of the labels.
        long_texts: handling of long texts. If the model was fine-tuned with
            windows, `predict`, `evaluate` and the export use windows; `fit`
            truncates.

    Raises:
        UserError: An argument is invalid, or the model cannot be loaded.
    """

    _has_weights = True

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

        trained = label_encoder.of_encoder(network)
        chosen = label_encoder.chosen(labels, trained, multi_label, regression)
        task = loading.task_of(network)
        checkpoint = getattr(network, "checkpoint", None)
        has_head = checkpoint and "output_weights" in checkpoint.values
        loaded = network
        network = builders.with_labels(
            network, CLASSIFIER, chosen, trained, seed
        )
        has_new_head = builders.is_new(loaded, network, CLASSIFIER)

        if truncate not in (None, *TRUNCATIONS):
            raise UserError(
                f"truncate={truncate!r:.60}",
                expected=f"one of {', '.join(TRUNCATIONS)}",
            )
        long_texts = LongTexts.of_task(task)
        if truncate:
            long_texts = dataclasses.replace(long_texts, truncate=truncate)

        usual = task.get("max_seq_length", 128)
        if not task and has_head:  # Hugging Face, with unnamed labels
            usual = tokenizer.max_length
        length = loading.length_of(network, max_length, usual)
        super().__init__(network, tokenizer, length, seed, **kwargs)
        self.labels, self.recipe = chosen, Recipe()
        self._has_new_head = has_new_head
        self._texts = TextBatches(chosen)
        self._set_long_texts(long_texts)

    def call(self, inputs, training=False):
        """Computes logits, float32 [B, C], from int32 [B, S] inputs."""
        inputs = {x: inputs[x] for x in feature_names.ENCODER_INPUTS}
        return self.network(inputs, training=training)["logits"]

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """Computes the loss, with a teacher as in run_classifier.py."""
        weights, of_teacher = classifier_teacher.divided(x, sample_weight)
        loss = super().compute_loss(x, y, y_pred, weights, training)
        if of_teacher is not None:
            outputs = x[feature_names.TEACHER_OUTPUTS]
            outputs = ops.reshape(outputs, ops.shape(y_pred))  # of one: [B]
            loss += self._teacher_loss(outputs, y_pred, of_teacher)
        return loss

    def fit(
        self,
        x,
        y=None,
        batch_size: int | None = None,
        epochs: int | None = None,
        *,
        start_head: bool | None = None,
        learning_rate: float | None = None,
        validation_split: float = 0.0,
        validation_data=None,
        shuffle: bool = True,
        class_weight: dict | None = None,
        sample_weight=None,
        teacher=None,
        distill_weight: float = 0.5,
        distill_temperature: float = 2.0,
        callbacks=None,
        **kwargs,
    ):
        """Trains on labelled texts, or on the outputs of a teacher.

        Args:
            x: list, array, column, tuple or `tf.data.Dataset`. The texts, see
                the class.
            y: list, array, column or None. The labels; None if `x` is a
                dataset, or if only the outputs of a teacher are learned.
            batch_size: int or None. Texts per batch; ignored for a dataset.
                Every shuffled batch is full: the last batch of an epoch is
                filled with the first texts of the next. Default: see
                `choose`; after `compile`, 32.
            epochs: int or None. Number of passes. Default: 3 or more, see
                `bert.tasks.recipe.choose`; after `compile` and for datasets, 1.
            start_head: bool or None. Whether a new head of a loaded encoder
                starts from a linear model of its outputs, instead of random
                weights; not for a dataset. Default: see `choose`.
            learning_rate: float or None. Peak of the schedule; an error after
                `compile`. Default: 3e-5 to 4.5e-4, see `choose`.
            validation_split: float. Fraction of the texts to evaluate on
                after each epoch, taken from the end; ignored if
                `validation_data` is given. Default: 0.
            validation_data: tuple, dataset or None. (texts, labels), (texts,
                labels, weights) or a dataset to evaluate on after each epoch.
            shuffle: bool. Whether to shuffle before each epoch. Default: True.
            class_weight: dict or None. Name or index of a class -> weight of
                its texts. Default: 1 for each class.
            sample_weight: list, array or None. Weights of the texts, [N].
            teacher: str, TextClassifier or None. Model, or its path, whose
                outputs are learned too (distillation). Its labels may have
                another order. Default: None.
            distill_weight, distill_temperature: float. See the flags of
                run_classifier.py.
            callbacks: list or None. Callbacks of Keras. With validation,
                their logs have the metrics of `evaluate`: `val_accuracy`, ...
            **kwargs: arguments of `keras.Model.fit`.

        Returns:
            the `keras.callbacks.History`.

        Raises:
            UserError: A text, a label or an argument is invalid.
        """
        arguments.check_training(1 if epochs is None else epochs, learning_rate)
        bucketing.check_size(1 if batch_size is None else batch_size)
        classifier_teacher.check(teacher, distill_weight, distill_temperature)
        held_out = None
        if validation_data is not None:
            validation_split = 0.0  # as in Keras
            if not isinstance(validation_data, tuple):
                validation_data = (validation_data,)
            held_out = self._texts.examples(*validation_data)

        if isinstance(x, tf.data.Dataset):
            arguments.check_dataset(
                validation_split=validation_split,
                teacher=teacher,
                start_head=start_head,
            )
            batches = self._texts.batches(
                x, y, sample_weight, self._encoded_texts, self._lengths
            ).map(self._divide)
            steps, examples, encoded = None, [], None
        else:
            needs_labels = teacher is None or validation_split > 0
            examples = self._texts.examples(x, y, sample_weight, needs_labels)
            if validation_split:
                examples, held_out = preprocessing.split(
                    examples, validation_split
                )

            encoded = self._encoded(examples)
            if teacher is not None:
                encoded = classifier_teacher.with_outputs(
                    teacher, self._task(), examples, encoded, distill_weight
                )
                self._teacher_loss = task_losses.TeacherLoss(
                    self.labels.size,
                    self.labels.kind == MULTI_LABEL,
                    distill_temperature,
                )
                self.train_function = None  # it may have another temperature

        class_weight = label_encoder.class_weights(class_weight, self.labels)

        head = None
        if self._has_new_head and start_head is not False:
            encoder = checkpoints.encoder_of(self.network)
            head = frozen_features.fit_head(encoder, self._task(), examples)
        usual = None if self._has_schedule else Recipe().train_batch_size
        size = loading.config_of(self.network).hidden_size
        chosen = recipe.choose(
            len(examples), batch_size or usual, size, head, bool(start_head)
        )
        once = not (self._has_schedule and examples)
        self.recipe = recipe.of_fit(chosen, once, epochs, learning_rate)
        if self._has_schedule:
            learning_rate = self.recipe.learning_rate
        if encoded is not None:
            batches, steps = self._batches(
                encoded, self.recipe.train_batch_size, shuffle
            )
        if head and self.recipe.start_head:
            frozen_features.add_start(self.network, CLASSIFIER, head)
        self._has_new_head = False

        # Thresholds and temperature are fitted to the weights before a step.
        callbacks = keras.tree.flatten(callbacks or [])
        if self.labels.decision != PLAIN:
            reset = keras.callbacks.LambdaCallback(
                on_train_batch_end=lambda batch, logs: self._set_decision(PLAIN)
            )
            callbacks = [reset, *callbacks]

        with self._texts.errors():
            return self._train(
                batches,
                steps,
                held_out,
                int(self.recipe.num_train_epochs),
                learning_rate,
                callbacks,
                rule=self.recipe.optimizer,
                class_weight=class_weight,
                **kwargs,
            )

    def evaluate(  # type: ignore[override]
        self,
        x,
        y=None,
        batch_size: int = 32,
        sample_weight=None,
        return_dict: bool = False,
        **kwargs,
    ) -> list[float] | dict[str, float]:
        """Computes the metrics of run_classifier.py on labelled texts.

        They compare the labels with what `predict` returns, whatever metrics
        `compile` was given.

        Args:
            x, y, sample_weight: see `fit`.
            batch_size, **kwargs: see `predict`. No progress bar is shown.
            return_dict: bool. Whether to return a dict. Default: False.

        Returns:
            the loss and the metrics: a list of floats, or a dict with
            `return_dict=True`. For classes: loss, accuracy and macro_f1.

        Raises:
            UserError: A text, a label or a weight is invalid.
        """
        examples = self._texts.examples(x, y, sample_weight)
        scores = self._evaluated(examples, batch_size, kwargs)
        named = {"loss": scores.pop("loss"), **scores}
        return named if return_dict else [*named.values()]

    def train_on_batch(
        self, x, y, sample_weight=None, class_weight=None, **kwargs
    ):
        """Takes a training step on one batch of texts.

        Args:
            x, y, sample_weight, class_weight: see `fit`.
            **kwargs: arguments of `keras.Model.train_on_batch`.

        Raises:
            UserError: A text or a label is invalid, or `compile` was not
                called.
        """
        class_weight = label_encoder.class_weights(class_weight, self.labels)
        logs = super().train_on_batch(
            x, y, sample_weight, class_weight=class_weight, **kwargs
        )
        self._set_decision(PLAIN)
        self._has_new_head = False
        return logs

    def export(  # type: ignore[override]
        self,
        filepath: str,
        pairs: bool = False,
        openvino: str | None = None,
        texts=None,
        format: str = SAVED_MODEL,
    ) -> None:
        """Writes the same export as run_classifier.py, for serving.

        Args:
            filepath: str. Path of a new or empty folder.
            pairs: bool. Whether the SavedModel takes pairs of texts. Default:
                False.
            openvino: str or None. Precision of the OpenVINO network in
                `filepath/openvino`, which runs without TensorFlow: "float32",
                "bfloat16", "int8" or "none". Default: "float32" if OpenVINO
                is installed, else "none".
            texts: list, array, column or tuple. A few hundred training texts,
                which calibrate int8.
            format: str. "tf_saved_model", or "onnx" for only the network, as
                convert_checkpoint.py writes it. Default: "tf_saved_model".

        Raises:
            UserError: The folder is not empty or cannot be written, the
                weights are quantized, or a package is missing.
        """
        if format not in (SAVED_MODEL, ONNX):
            raise UserError(
                f"format={format!r:.60}", expected=f"{SAVED_MODEL} or {ONNX}"
            )
        if format == ONNX:
            exports.write_onnx(self, os.fspath(filepath))
            return
        self._write_export(filepath, openvino, texts, pairs=pairs)

    def get_config(self) -> dict:
        """Returns the arguments; `network` and `vocabulary` replace `model`."""
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
        """Creates a model from the result of `get_config`."""
        answered = "decision", "windows"
        given = {k: x for k, x in config.items() if k not in answered}
        model = super().from_config(given, custom_objects)
        model._set_long_texts(LongTexts.of_task(config))
        model._set_decision(PostProcessing.of_task(config))
        return model

    def _task(self) -> TextClassification:
        return TextClassification(
            self.tokenizer,
            self.labels,
            self.max_length,
            self.long_texts,
            has_pairs=None,  # single texts and pairs are accepted
        )

    def _set_decision(self, decision: PostProcessing) -> None:
        self.labels = dataclasses.replace(self.labels, decision=decision)
        self._describe()

    def _set_long_texts(self, long_texts: LongTexts) -> None:
        self.long_texts = long_texts
        self._describe()

    def _default_loss(self) -> dict:
        is_multi_label = self.labels.kind == MULTI_LABEL
        loss, metrics = networks.default_loss(self.labels.size, is_multi_label)
        return {"loss": loss, "metrics": metrics}

    def _zeros(self) -> tuple[NDArray, NDArray]:
        logits = np.zeros((2, self.labels.size), np.float32)
        if self.labels.kind == MULTI_LABEL:
            return logits, logits
        kind = np.int32 if self.labels.kind == CLASSES else np.float32
        return np.zeros(2, kind), logits

    def _training_rows(self, x, y, weights) -> list[TextExample]:
        return self._texts.examples(x, y, weights)

    def _encoded(self, rows: list[TextExample]) -> Examples:
        has_weights = any(row.weight != 1 for row in rows)
        return self._encoded_texts(rows, has_weights)

    def _encoded_texts(
        self, rows: list[TextExample], has_weights: bool
    ) -> Examples:
        """Encodes labelled texts, with their weights if they have any."""
        task = self._task()
        records, schema = task.records(rows), task.schema
        if has_weights:
            schema = schema | {feature_names.LABEL_WEIGHTS: Feature("float32")}
            records = (
                {**record, feature_names.LABEL_WEIGHTS: [row.weight]}
                for record, row in zip(records, rows)
            )
        return Examples(records, schema)

    def _labels_of(self, batch: dict):
        labels = batch[feature_names.LABEL_IDS]
        if self.labels.kind != MULTI_LABEL:
            return labels
        return ops.cast(ops.reshape(labels, [-1, self.labels.size]), "float32")

    def _inputs(self, x) -> list[dict]:
        a, b = self._texts.texts(x)
        return [{"text": x, "text_b": y} for x, y in zip(a, b)]

    def _columns_of(self, predictions: list[dict]) -> dict:
        if self.labels.kind == REGRESSION:
            return arguments.columns_of(predictions, {"value": np.float32})
        name = "probabilities"
        rows = [x | {name: [*x[name].values()]} for x in predictions]
        columns = arguments.columns_of(rows, {"label": None, name: np.float32})
        columns[name] = columns[name].reshape(len(rows), self.labels.size)
        return columns
