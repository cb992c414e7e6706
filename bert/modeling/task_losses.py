"""Losses of fine-tuning; losses of labels are also losses of Keras."""

from typing import Any

import keras
from keras import ops

from bert.data import feature_names
from bert.modeling import losses

LABELS = "labels"
_NO_CHOICE = -1e9  # added to the logits of padding


def of_labels(
    num_labels: int,
    is_multi_label: bool = False,
    weights: tuple[float, ...] = (),
    smoothing: float = 0.0,
) -> "LabelLoss":
    """Returns the loss of labels, for scripts and for `compile`.

    Args:
        num_labels: int. C of logits [B, C]; 1 without `is_multi_label`:
            regression.
        is_multi_label: bool. Whether an example may have several labels.
            Default: False.
        weights, smoothing: see `LabelLoss`.
    """
    if is_multi_label:
        return MultiLabelLoss(weights, smoothing)
    return ClassLoss(weights, smoothing) if num_labels > 1 else NumberLoss()


class LabelLoss(losses.Loss, keras.losses.Loss):
    """Loss of labels, a number for each example.

    In scripts it gives sums over a batch, and its weight is the number of
    examples. With `compile` it is a loss of Keras, the mean over a batch.

    Args:
        weights: tuple of float. Weight of each label. Default: (), 1.
        smoothing: float. Label smoothing: probability that is divided equally
            among all answers. Default: 0.
    """

    def __init__(
        self, weights: tuple[float, ...] = (), smoothing: float = 0.0, **kwargs
    ):
        keras.losses.Loss.__init__(self, **{"name": LABELS, **kwargs})
        self.weights, self.smoothing = tuple(weights), smoothing

    def get_config(self) -> dict[str, Any]:
        """Arguments of the constructor."""
        config = keras.losses.Loss.get_config(self)
        return config | {"weights": self.weights, "smoothing": self.smoothing}

    def hits(self, label, logits):
        """Whether the prediction of each example is correct, bool [B].

        Args:
            label, logits: see `call`.
        """
        raise NotImplementedError

    def weight(self, batch: dict):
        """Weight of a batch; see `Loss`."""
        real = ops.cast(batch[feature_names.IS_REAL_EXAMPLE], "float32")
        return ops.sum(real)

    def sums(self, batch: dict, outputs: dict) -> dict:
        """Sums over a batch; see `Loss`.

        Args:
            batch: dict. label_ids, see `call`; is_real_example, [B].
            outputs: dict. logits, float32 [B, C].
        """
        label, logits = batch[feature_names.LABEL_IDS], outputs["logits"]
        weight = ops.cast(batch[feature_names.IS_REAL_EXAMPLE], "float32")
        sums = {"loss": ops.sum(self.call(label, logits) * weight)}
        if self.has_accuracy:
            hits = ops.cast(self.hits(label, logits), "float32")
            sums["accuracy"] = ops.sum(hits * weight)
        return sums | {"weight": ops.sum(weight)}


@keras.saving.register_keras_serializable("bert")
class ClassLoss(LabelLoss):
    """Cross entropy of one of C classes."""

    def call(self, label, logits):
        """Loss of each example, float32 [B].

        Args:
            label: int32 [B].
            logits: float32 [B, C].
        """
        loss = ops.sparse_categorical_crossentropy(
            label, logits, from_logits=True
        )
        if self.smoothing:
            of_all = -ops.mean(ops.log_softmax(logits, -1), -1)
            loss = (1.0 - self.smoothing) * loss + self.smoothing * of_all
        if self.weights:
            weights = ops.convert_to_tensor(self.weights, loss.dtype)
            loss *= ops.take(weights, ops.cast(label, "int32"))
        return loss

    def hits(self, label, logits):
        """Whether the class is predicted; see `LabelLoss`."""
        return ops.argmax(logits, -1) == label


@keras.saving.register_keras_serializable("bert")
class MultiLabelLoss(LabelLoss):
    """Mean cross entropy over C labels, any of which may be given.

    The weights are those of each label's positive examples.
    """

    def call(self, label, logits):
        """Loss of each example, float32 [B].

        Args:
            label: 0 or 1, [B, C], or [B] for C = 1.
            logits: float32 [B, C].
        """
        # With a single class, labels are [B].
        label = ops.reshape(label, ops.shape(logits))
        positive = ops.cast(label, logits.dtype)
        if self.smoothing:
            positive = (1.0 - self.smoothing) * positive + self.smoothing / 2
        of_labels = ops.softplus(logits) - positive * logits
        if self.weights:
            more = ops.convert_to_tensor(self.weights, logits.dtype) - 1.0
            of_labels += more * positive * ops.softplus(-logits)
        return ops.mean(of_labels, -1)

    def hits(self, label, logits):
        """Whether all labels are predicted; see `LabelLoss`."""
        label = ops.reshape(label, ops.shape(logits))
        return ops.all(ops.cast(logits >= 0, label.dtype) == label, -1)


@keras.saving.register_keras_serializable("bert")
class NumberLoss(LabelLoss):
    """Squared error of a number."""

    has_accuracy = False

    def call(self, label, logits):
        """Loss of each example, float32 [B].

        Args:
            label: float32 [B].
            logits: float32 [B, 1].
        """
        error = logits[:, 0] - ops.reshape(label, (-1,))
        return error * error


class TeacherLoss(keras.losses.Loss):
    """Loss of a student, whose targets are the logits of a teacher.

    Hinton et al. 2015, arXiv:1503.02531: T^2 KL(teacher / T || student / T).
    With the factor, the size of the gradient hardly depends on T. The loss of
    numbers is the squared error, without T; that of several labels, each with
    two probabilities, is the mean over the labels.

    Args:
        num_labels, is_multi_label: see `of_labels`.
        temperature: float. T.
    """

    def __init__(
        self, num_labels: int, is_multi_label: bool, temperature: float
    ):
        super().__init__(name="teacher")
        self.num_labels, self.is_multi_label = num_labels, is_multi_label
        self.temperature = temperature

    def call(self, teacher, logits):
        """Loss of each example, float32 [B].

        Args:
            teacher, logits: float32 [B, C].
        """
        if self.num_labels == 1 and not self.is_multi_label:
            return ops.sum((teacher - logits) ** 2, -1)
        of_kind = _labels if self.is_multi_label else _classes
        t = self.temperature
        return t**2 * of_kind(teacher / t, logits / t)


def _classes(teacher, logits):
    """Divergence of the probabilities of C classes, [B]."""
    teacher, logits = (ops.log_softmax(x, -1) for x in (teacher, logits))
    return ops.sum(ops.exp(teacher) * (teacher - logits), -1)


def _labels(teacher, logits):
    """Mean divergence of the probabilities of C labels, [B]."""
    chance = ops.sigmoid(teacher)
    excess = ops.softplus(logits) - ops.softplus(teacher)
    return ops.mean(excess - chance * (logits - teacher), -1)


class Distilled(losses.Loss):
    """Loss of labels and of a teacher.

    The loss of an example is `(1 - a) * hard + a * soft`, with its weight a.
    The accuracy compares with the labels.

    Args:
        hard: LabelLoss. Loss of the labels.
        soft: TeacherLoss. Loss of the teacher's logits.
    """

    name = LABELS

    def __init__(self, hard: LabelLoss, soft: TeacherLoss):
        self.hard, self.soft = hard, soft
        self.has_accuracy = hard.has_accuracy

    def weight(self, batch: dict):
        """Weight of a batch; see `Loss`."""
        return self.hard.weight(batch)

    def sums(self, batch: dict, outputs: dict) -> dict:
        """Sums over a batch; see `Loss`.

        Args:
            batch: dict. As for `hard`; teacher_outputs, float32 [B, C];
                teacher_weights, float32 [B], the weights a.
            outputs: dict. logits, float32 [B, C].
        """
        real = ops.cast(batch[feature_names.IS_REAL_EXAMPLE], "float32")
        share = batch[feature_names.TEACHER_WEIGHTS]
        of_labels = {feature_names.IS_REAL_EXAMPLE: real * (1.0 - share)}
        loss = self.hard.sums({**batch, **of_labels}, outputs)["loss"]

        teacher = batch[feature_names.TEACHER_OUTPUTS]
        logits = outputs["logits"]
        each = self.soft.call(ops.reshape(teacher, ops.shape(logits)), logits)
        loss += ops.sum(each * share * real)
        return {**self.hard.sums(batch, outputs), "loss": loss}


class TokenLoss(losses.Loss):
    """Cross entropy of labelled tokens, whose number is the weight."""

    name = "token"

    def weight(self, batch: dict):
        """Weight of a batch; see `Loss`."""
        return ops.sum(batch[feature_names.LABEL_WEIGHTS])

    def sums(self, batch: dict, outputs: dict) -> dict:
        """Sums over a batch; see `Loss`.

        Args:
            batch: dict. `label_ids`, int32 [B, S], and `label_weights`,
                float32 [B, S]; tokens of weight 0 have no loss.
            outputs: dict. logits, float32 [B, S, C].
        """
        weight = batch[feature_names.LABEL_WEIGHTS]
        label = batch[feature_names.LABEL_IDS]
        return losses.weighted_sums(outputs["logits"], label, weight)


class ChoiceLoss(losses.Loss):
    """Cross entropy of choices; the weight is the number of examples."""

    name = "choice"

    def weight(self, batch: dict):
        """Weight of a batch; see `Loss`."""
        return ops.sum(ops.ones_like(batch[feature_names.LABEL_IDS], "float32"))

    def sums(self, batch: dict, outputs: dict) -> dict:
        """Sums over a batch; see `Loss`.

        Args:
            batch: dict. `label_ids`, int32 [B], and `choice_weights`, float32
                [B, C], 0 for missing choices.
            outputs: dict. logits, float32 [B, C].
        """
        # Missing choices get probability 0, and so no gradient.
        missing = 1.0 - batch[feature_names.CHOICE_WEIGHTS]
        logits = outputs["logits"] + missing * _NO_CHOICE
        label = batch[feature_names.LABEL_IDS]
        weight = ops.ones_like(label, "float32")
        return losses.weighted_sums(logits, label, weight)


class SpanLoss(losses.Loss):
    """Loss of spans; the weight is the number of examples.

    The loss of an example is the mean of the losses of start and end, as in
    google-research/bert `run_squad.py`. In contrast to it, padding is masked,
    so that the loss does not depend on the length of the batch. An example is
    correct if both positions are.
    """

    name = "span"

    def weight(self, batch: dict):
        """Weight of a batch; see `Loss`."""
        start = batch[feature_names.START_POSITIONS]
        return ops.sum(ops.ones_like(start, "float32"))

    def sums(self, batch: dict, outputs: dict) -> dict:
        """Sums over a batch; see `Loss`.

        Args:
            batch: dict. `start_positions` and `end_positions`, int32 [B];
                `input_mask`, int32 [B, S].
            outputs: dict. start_logits and end_logits, float32 [B, S].
        """
        padding = 1.0 - ops.cast(batch[feature_names.INPUT_MASK], "float32")

        loss, hits = 0.0, True
        for label, logits in (
            (batch[feature_names.START_POSITIONS], outputs["start_logits"]),
            (batch[feature_names.END_POSITIONS], outputs["end_logits"]),
        ):
            logits = logits + padding * _NO_CHOICE
            loss = loss + ops.sparse_categorical_crossentropy(
                label, logits, from_logits=True
            )
            hits = ops.logical_and(hits, ops.argmax(logits, -1) == label)

        return {
            "loss": ops.sum(loss) / 2.0,
            "accuracy": ops.sum(ops.cast(hits, "float32")),
            "weight": ops.sum(ops.ones_like(loss)),
        }
