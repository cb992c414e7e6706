"""A classifier of texts: strings in, labels out, as a Keras model."""

import itertools
import os
import tempfile

import keras
import numpy as np

from bert import encoders, heads, text_labels
from bert.common import atomic, flags, outputs
from bert.common.errors import UserError
from bert.common.progress import say
from bert.data import label_kinds
from bert.data.label_kinds import CLASSES, MULTI_LABEL, REGRESSION
from bert.data.text.columns import finite
from bert.data.text.tokenizer import Tokenizer
from bert.modeling import openvino_network, task_models
from bert.modeling.task_models import Classifier
from bert.serving import export_folder, graphs, openvino_export
from bert.tasks.classification import export
from bert.tasks.classification.settings import Settings
from bert.text_batches import TextBatches
from bert.training.optimization import AdamWeightDecay, WarmupLinearDecay

_RATE, _WARMUP = 5e-5, 0.1  # of the original; warm-up as a share of the steps


@keras.saving.register_keras_serializable("bert")
class TextClassifier(keras.Model):
    """An encoder with a classifier that takes strings.

        model = bert.TextClassifier("model", labels=["ham", "spam"])
        model.fit(["you won", "see you"], ["spam", "ham"], epochs=3)
        model.predict(["win a prize now"])["label"]  # ["spam"]

    Texts are strings in a list, an array, a column or a table of one column;
    or a tuple of two of them, for pairs. Labels are names, or the numbers
    from 0 of names that are no numbers; for `multi_label`, a list of names or
    a row of 0 and 1 for each text; for `regression`, any numbers. A
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
        seed: of the head's initial weights, and of the order of the texts.

    Attributes:
        network: the model of `bert.classifier`, from ids to logits. Its layer
            "bert" is the encoder, for `enable_lora` and `quantize`.
        tokenizer: a `bert.Tokenizer`.
        labels: kind and names of the labels.

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
            say(
                f"a new head: {network.checkpoint.path} has one for "
                f"{text_labels.shown(trained)}, not for "
                f"{text_labels.shown(self.labels)}"
            )
            network = heads.new_classifier(network, self.labels.size, seed)
        elif not isinstance(network, Classifier):
            network = heads.classifier(network, self.labels.size, seed)
        self.network, self.seed = network, seed

        longest = encoders.config_of(network).max_position_embeddings
        usual = task.get("max_seq_length", 128)
        self.max_length = max_length or min(usual, longest)
        if not 3 <= self.max_length <= longest:
            raise UserError(
                f"max_length={max_length}", expected=f"3 to {longest}"
            )

        network.task = {  # for `bert.save`
            "kind": self.labels.kind,
            "labels": list(self.labels.names),
            "max_seq_length": self.max_length,
        }
        self._texts = TextBatches(
            self.tokenizer, self.max_length, self.labels, seed
        )
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

        Raises:
            UserError: the loss takes probabilities.
        """
        self._has_schedule = False
        usual_loss, usual_metrics = self._default_loss()
        loss = usual_loss if loss is None else loss
        metrics = usual_metrics if metrics is None else metrics
        task_models.check_loss(loss)

        # XLA would compile a program for each length of a batch.
        kwargs.setdefault("jit_compile", False)
        super().compile(optimizer, loss, metrics=metrics, **kwargs)

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
        columns = x, y, sample_weight
        if validation_split:
            batches, validation_data = self._texts.split(
                *columns, validation_split, batch_size, shuffle
            )
        else:
            batches = self._texts.labeled(*columns, batch_size, shuffle)

        if validation_data is not None:
            if not isinstance(validation_data, tuple):
                validation_data = (validation_data,)
            validation_data = self._texts.labeled(
                *validation_data, batch_size=batch_size
            )
        if class_weight:
            class_weight = self._class_weight(class_weight)

        # The schedule ends with the last step, so it needs their number.
        if self._has_schedule:
            steps = kwargs.get("steps_per_epoch") or int(batches.cardinality())
            if steps < 1:
                raise UserError(
                    "the size of the dataset is unknown",
                    fix="pass steps_per_epoch",
                )
            self._compile(learning_rate, epochs * steps)
        elif learning_rate is not None:
            raise UserError(
                "learning_rate is given, but the model is compiled",
                fix="pass it to the optimizer",
            )

        with self._texts.errors():
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
        # No step is taken, so any schedule will do.
        if not self.compiled:
            self._compile(None, 1)

        batches = self._texts.labeled(x, y, sample_weight, batch_size)
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
            `regression`, value, float32 [N].

        Raises:
            UserError: a text is invalid.
        """
        batches, order = self._texts.unlabeled(x, batch_size)

        # Keras does not predict nothing.
        logits = np.zeros((0, self.labels.size), np.float32)
        if int(batches.cardinality()) != 0:
            with self._texts.errors():
                logits = super().predict(batches, **kwargs)[order]

        kind = self.labels.kind
        if kind == REGRESSION:
            return {export.VALUE: logits[:, 0]}

        names, ids = self.labels.names, label_kinds.answers(logits, kind)
        if kind == MULTI_LABEL:  # rows of truth values, no ids
            answers = [list(itertools.compress(names, row)) for row in ids]
        else:
            answers = [names[i] for i in ids]
        return {
            export.LABEL: answers,
            export.PROBABILITIES: label_kinds.probabilities(logits, kind),
        }

    def export(
        self,
        filepath: str,
        pairs: bool = False,
        openvino: str | None = None,
        texts=(),
    ) -> None:
        """Writes the SavedModel that run_classifier.py writes.

        Args:
            filepath: a new or empty folder.
            pairs: whether it takes pairs of texts.
            openvino: precision of a network in `filepath/openvino`, which is
                asked without TensorFlow: float32, bfloat16 or int8.
            texts: for int8, a few hundred texts of training, as for `fit`.

        Raises:
            UserError: the folder is not empty or cannot be written, the
                weights are quantized, or a package is missing.
        """
        filepath = os.fspath(filepath)
        openvino_network.check(openvino, "openvino", len(texts))
        outputs.check_new_folder(filepath, "pass another folder")
        settings = flags.replace(Settings(), max_seq_length=self.max_length)
        given = self.tokenizer
        rows = self._texts.rows(texts) if openvino == "int8" else ()
        with tempfile.TemporaryDirectory() as scratch:
            # The asset of a SavedModel keeps the name of its file.
            path = os.path.join(scratch, "vocab.txt")
            atomic.write_whole(path, given.content)
            tokenizer = Tokenizer.of(path, given.casing)
            source = encoders.weights_of(
                self.network,
                tokenizer.with_max_length(self.max_length),
                filepath,
            )
            source.task = source.task | {"pairs": pairs}
            classifier = export.Classifier(
                source, settings, self.labels, pairs, source.values
            )

            def save(folder):
                graphs.save(classifier, folder, "tokens", "examples")
                if openvino:
                    openvino_export.write(folder, source, openvino, rows)

            export_folder.write(filepath, save)

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

    def _compile(self, learning_rate: float | None, steps: int) -> None:
        """Compiles with the original's optimizer and schedule."""
        peak = _RATE if learning_rate is None else learning_rate
        schedule = WarmupLinearDecay(peak, steps, int(_WARMUP * steps))
        loss, metrics = self._default_loss()

        # The optimizer's variables belong on the devices of the model.
        with self.distribute_strategy.scope():
            super().compile(
                AdamWeightDecay(schedule),
                loss,
                metrics=metrics,
                jit_compile=False,
            )

    def _default_loss(self) -> tuple:
        return task_models.default_loss(
            self.labels.size, self.labels.kind == MULTI_LABEL
        )

    def _class_weight(self, weights: dict) -> dict[int, float]:
        """Converts names of labels, or their numbers, to their numbers."""
        kind = self.labels.kind
        if kind != CLASSES:
            raise UserError(
                f"class_weight is given for labels of the kind {kind}",
                fix="pass sample_weight",
            )
        ids = text_labels.ids(list(weights), self.labels).tolist()
        values = finite(weights.values(), "class_weight")
        return dict(zip(ids, values.tolist()))
