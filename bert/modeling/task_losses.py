"""Fine-tuning losses, in the same form as `modeling.losses`."""

from collections.abc import Callable

from keras import ops

from bert.data import feature_names
from bert.modeling import losses

LABELS = "labels"
TOKEN = "token"
CHOICE = "choice"
SPAN = "span"
_NO_CHOICE = -1e9  # added to the logits of padding


def label_weights(batch: dict) -> dict:
    """Weight of the labels: number of examples in a batch.

    Args:
        batch: dict. `is_real_example`, [B].

    Returns:
        Dict of labels: float32 scalar.
    """
    real = ops.cast(batch[feature_names.IS_REAL_EXAMPLE], "float32")
    return {LABELS: ops.sum(real)}


def class_sums(
    batch: dict,
    outputs: dict,
    weights: tuple[float, ...] = (),
    smoothing: float = 0.0,
) -> dict:
    """Sums for classification: one of C classes for each example.

    Args:
        batch: dict. label_ids, int32 [B]; is_real_example, [B].
        outputs: dict. logits, float32 [B, C].
        weights: tuple of float. Loss weight of each class. Default: (), 1.
        smoothing: float. Label smoothing: probability that is divided equally
            among all classes. Default: 0.

    Returns:
        Dict of float32 scalars:
            `labels_loss`: sum of cross entropies in nats.
            `labels_accuracy`: number of correct predictions.
            `labels_weight`: divisor of both.
    """
    label, logits = batch[feature_names.LABEL_IDS], outputs["logits"]
    loss = ops.sparse_categorical_crossentropy(label, logits, from_logits=True)
    if smoothing:
        of_all = -ops.mean(ops.log_softmax(logits, -1), -1)
        loss = (1.0 - smoothing) * loss + smoothing * of_all
    if weights:
        loss *= ops.take(ops.convert_to_tensor(weights, loss.dtype), label)
    return _label_sums(batch, loss, ops.argmax(logits, -1) == label)


def multi_label_sums(
    batch: dict,
    outputs: dict,
    weights: tuple[float, ...] = (),
    smoothing: float = 0.0,
) -> dict:
    """Sums for multi-label classification: any of C labels.

    Args:
        batch: dict. label_ids, int32 [B, C], or [B] for C = 1, values 0 or 1;
            is_real_example, [B].
        outputs: dict. logits, float32 [B, C].
        weights: tuple of float. Loss weight of each label's positive examples.
            Default: (), 1.
        smoothing: float. Label smoothing: probability that is divided equally
            between 0 and 1. Default: 0.

    Returns:
        Dict as in `class_sums`. The loss is the mean cross entropy over the
        labels; the accuracy counts examples with all labels correct.
    """
    logits = outputs["logits"]
    # With a single class, labels are [B].
    label = ops.reshape(batch[feature_names.LABEL_IDS], ops.shape(logits))
    positive = ops.cast(label, logits.dtype)
    if smoothing:
        positive = (1.0 - smoothing) * positive + smoothing / 2
    losses_of_labels = ops.softplus(logits) - positive * logits
    if weights:
        more = ops.convert_to_tensor(weights, logits.dtype) - 1.0
        losses_of_labels += more * positive * ops.softplus(-logits)
    loss = ops.mean(losses_of_labels, -1)
    hits = ops.all(ops.cast(logits >= 0, label.dtype) == label, -1)
    return _label_sums(batch, loss, hits)


def number_sums(batch: dict, outputs: dict) -> dict:
    """Sums for regression: a number for each example.

    Args:
        batch: dict. label_ids, float32 [B]; is_real_example, [B].
        outputs: dict. logits, float32 [B, 1].

    Returns:
        Dict as in `class_sums`, with squared errors and without accuracy.
    """
    error = outputs["logits"][:, 0] - batch[feature_names.LABEL_IDS]
    weight = ops.cast(batch[feature_names.IS_REAL_EXAMPLE], "float32")
    return {
        f"{LABELS}_loss": ops.sum(error * error * weight),
        f"{LABELS}_weight": ops.sum(weight),
    }


def distilled_sums(
    batch: dict,
    outputs: dict,
    hard_sums: Callable[[dict, dict], dict],
    soft_loss: Callable,
) -> dict:
    """Sums for labels and a teacher.

    The loss of an example is `(1 - a) * hard + a * soft`, with its weight a.

    Args:
        batch: dict. As for `hard_sums`; teacher_outputs, float32 [B, C];
            teacher_weights, float32 [B], the weights a.
        outputs: dict. logits, float32 [B, C].
        hard_sums: function. Sums of the labels, such as `class_sums`.
        soft_loss: function. (logits of the teacher, logits) -> float32 [B],
            see `teacher_loss`.

    Returns:
        Dict as in `class_sums`; the accuracy compares with the labels.
    """
    real = ops.cast(batch[feature_names.IS_REAL_EXAMPLE], "float32")
    share = batch[feature_names.TEACHER_WEIGHTS]
    of_labels = {feature_names.IS_REAL_EXAMPLE: real * (1.0 - share)}
    loss = hard_sums({**batch, **of_labels}, outputs)[f"{LABELS}_loss"]

    teacher = batch[feature_names.TEACHER_OUTPUTS]
    logits = outputs["logits"]
    each = soft_loss(ops.reshape(teacher, ops.shape(logits)), logits)
    loss += ops.sum(each * share * real)
    return {**hard_sums(batch, outputs), f"{LABELS}_loss": loss}


def teacher_loss(
    size: int, is_multi_label: bool, temperature: float
) -> Callable:
    """Returns the loss of a student beside its teacher.

    Hinton et al. 2015, arXiv:1503.02531: T^2 KL(teacher / T || student / T).
    With the factor, the size of the gradient hardly depends on T.

    Args:
        size: int. C. 1 without `is_multi_label`: regression, whose loss is the
            squared error, without T.
        is_multi_label: bool. Whether each label has two probabilities; the
            loss is the mean over the labels.
        temperature: float. T.

    Returns:
        function. (logits of the teacher, logits of the student), float32
        [B, C] -> float32 [B].
    """

    def of_classes(teacher, logits):
        teacher = ops.log_softmax(teacher / temperature, -1)
        logits = ops.log_softmax(logits / temperature, -1)
        return ops.sum(ops.exp(teacher) * (teacher - logits), -1)

    def of_labels(teacher, logits):
        teacher, logits = teacher / temperature, logits / temperature
        chance = ops.sigmoid(teacher)
        excess = ops.softplus(logits) - ops.softplus(teacher)
        return ops.mean(excess - chance * (logits - teacher), -1)

    if size == 1 and not is_multi_label:
        return lambda teacher, logits: ops.sum((teacher - logits) ** 2, -1)
    divergence = of_labels if is_multi_label else of_classes
    return lambda *logits: temperature**2 * divergence(*logits)


def _label_sums(batch: dict, loss, hits) -> dict:
    weight = ops.cast(batch[feature_names.IS_REAL_EXAMPLE], "float32")
    return {
        f"{LABELS}_loss": ops.sum(loss * weight),
        f"{LABELS}_accuracy": ops.sum(ops.cast(hits, "float32") * weight),
        f"{LABELS}_weight": ops.sum(weight),
    }


def token_weights(batch: dict) -> dict:
    """Weight of token labels: number of labeled tokens in a batch.

    Args:
        batch: dict. `label_weights`, float32 [B, S].
    """
    return {TOKEN: ops.sum(batch[feature_names.LABEL_WEIGHTS])}


def token_sums(batch: dict, outputs: dict) -> dict:
    """Sums for token classification; see `losses.pretraining_sums`.

    Args:
        batch: dict. `label_ids`, int32 [B, S], and `label_weights`, float32
            [B, S]; tokens of weight 0 have no loss.
        outputs: dict. logits, float32 [B, S, C].
    """
    weight, label = (
        batch[feature_names.LABEL_WEIGHTS],
        batch[feature_names.LABEL_IDS],
    )
    return losses.weighted_sums(TOKEN, outputs["logits"], label, weight)


def choice_weights(batch: dict) -> dict:
    """Weight of choices: number of examples in a batch.

    Args:
        batch: dict. `label_ids`, int32 [B].
    """
    label = batch[feature_names.LABEL_IDS]
    return {CHOICE: ops.sum(ops.ones_like(label, "float32"))}


def choice_sums(batch: dict, outputs: dict) -> dict:
    """Sums for multiple choice; see `losses.pretraining_sums`.

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
    return losses.weighted_sums(CHOICE, logits, label, weight)


def span_weights(batch: dict) -> dict:
    """Weight of spans: number of examples in a batch.

    Args:
        batch: dict. `start_positions`, int32 [B].
    """
    start = batch[feature_names.START_POSITIONS]
    return {SPAN: ops.sum(ops.ones_like(start, "float32"))}


def span_sums(batch: dict, outputs: dict) -> dict:
    """Sums for spans; see `losses.pretraining_sums`.

    The loss of an example is the mean of the losses of start and end, as in
    google-research/bert `run_squad.py`. In contrast to it, padding is masked,
    so that the loss does not depend on the length of the batch. An example is
    correct if both positions are.

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
        f"{SPAN}_loss": ops.sum(loss) / 2.0,
        f"{SPAN}_accuracy": ops.sum(ops.cast(hits, "float32")),
        f"{SPAN}_weight": ops.sum(ops.ones_like(loss)),
    }
