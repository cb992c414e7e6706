"""Sums of loss and of hits in fine-tuning, over the rows of a batch.

What they return is told in `modeling.losses`.
"""

from keras import ops

from data import features
from modeling import fused_ops

LABELS = "labels"
TOKEN = "token"
CHOICE = "choice"
SPAN = "span"
_NO_CHOICE = -1e9  # added to the score of what is no choice


def label_weights(batch: dict) -> dict:
    """Weight of the labels in a batch: its rows.

    Args:
        batch: with `is_real_example`, [B].

    Returns:
        labels: float32 scalar.
    """
    real = ops.cast(batch[features.IS_REAL_EXAMPLE], "float32")
    return {LABELS: ops.sum(real)}


def class_sums(batch: dict, outputs: dict) -> dict:
    """Sums over a batch where each row has one class of C.

    Args:
        batch: label_ids, int32 [B]; is_real_example, [B].
        outputs: logits, float32 [B, C].

    Returns:
        float32 scalars: `labels_loss`, the sum of cross entropies in nats;
        `labels_accuracy`, the number of right answers; `labels_weight`,
        what to divide both by.
    """
    label, logits = batch[features.LABEL_IDS], outputs["logits"]
    loss = ops.sparse_categorical_crossentropy(label, logits, from_logits=True)
    return _label_sums(batch, loss, ops.argmax(logits, -1) == label)


def multi_label_sums(batch: dict, outputs: dict) -> dict:
    """Sums over a batch where each row has any of C labels.

    Args:
        batch: label_ids, int32 [B, C], 0 or 1; is_real_example, [B].
        outputs: logits, float32 [B, C].

    Returns:
        as `class_sums`: the cross entropies' mean over the labels, and rows
        with every label right.
    """
    label, logits = batch[features.LABEL_IDS], outputs["logits"]
    positive = ops.cast(label, logits.dtype)
    loss = ops.mean(ops.softplus(logits) - positive * logits, -1)
    hits = ops.all(ops.cast(logits >= 0, label.dtype) == label, -1)
    return _label_sums(batch, loss, hits)


def number_sums(batch: dict, outputs: dict) -> dict:
    """Sums over a batch where each row has a number.

    Args:
        batch: label_ids, float32 [B]; is_real_example, [B].
        outputs: logits, float32 [B, 1].

    Returns:
        as `class_sums`, without accuracy: squared errors.
    """
    error = outputs["logits"][:, 0] - batch[features.LABEL_IDS]
    weight = ops.cast(batch[features.IS_REAL_EXAMPLE], "float32")
    return {
        f"{LABELS}_loss": ops.sum(error * error * weight),
        f"{LABELS}_weight": ops.sum(weight),
    }


def _label_sums(batch: dict, loss, hits) -> dict:
    weight = ops.cast(batch[features.IS_REAL_EXAMPLE], "float32")
    return {
        f"{LABELS}_loss": ops.sum(loss * weight),
        f"{LABELS}_accuracy": ops.sum(ops.cast(hits, "float32") * weight),
        f"{LABELS}_weight": ops.sum(weight),
    }


def token_weights(batch: dict) -> dict:
    """Weight of the one objective: words that have their label here.

    Args:
        batch: `label_weights`, float32 [B, S].
    """
    return {TOKEN: ops.sum(batch[features.LABEL_WEIGHTS])}


def token_sums(batch: dict, outputs: dict) -> dict:
    """Sums over the words of a batch; see `pretraining_sums`.

    Args:
        batch: `label_ids`, int32 [B, S], and `label_weights`, float32
            [B, S]; pieces of weight 0 have no loss.
        outputs: logits, float32 [B, S, C].
    """
    weight, label = batch[features.LABEL_WEIGHTS], batch[features.LABEL_IDS]
    return weighted_sums(TOKEN, outputs["logits"], label, weight)


def choice_weights(batch: dict) -> dict:
    """Weight of the one objective: rows.

    Args:
        batch: `label_ids`, int32 [B].
    """
    label = batch[features.LABEL_IDS]
    return {CHOICE: ops.sum(ops.ones_like(label, "float32"))}


def choice_sums(batch: dict, outputs: dict) -> dict:
    """Sums over the rows of a batch; see `pretraining_sums`.

    Args:
        batch: `label_ids`, int32 [B], and `choice_weights`, float32 [B, C],
            0 where a row has no such choice.
        outputs: logits, float32 [B, C].
    """
    missing = 1.0 - batch[features.CHOICE_WEIGHTS]
    logits = outputs["logits"] + missing * _NO_CHOICE
    label = batch[features.LABEL_IDS]
    return weighted_sums(CHOICE, logits, label, ops.ones_like(label, "float32"))


def span_weights(batch: dict) -> dict:
    """Weight of the one objective: rows.

    Args:
        batch: `start_positions`, int32 [B].
    """
    start = batch[features.START_POSITIONS]
    return {SPAN: ops.sum(ops.ones_like(start, "float32"))}


def span_sums(batch: dict, outputs: dict) -> dict:
    """Sums over the rows of a batch; see `pretraining_sums`.

    The loss of a row is the mean of those of start and end, as in
    google-research/bert `run_squad.py`; but padding takes no part in it, so
    that it does not depend on how long the batch is. A hit is both right.

    Args:
        batch: `start_positions` and `end_positions`, int32 [B]; `input_mask`,
            int32 [B, S].
        outputs: start_logits and end_logits, float32 [B, S].
    """
    padding = 1.0 - ops.cast(batch[features.INPUT_MASK], "float32")
    loss, hits = 0.0, True
    for label, logits in (
        (batch[features.START_POSITIONS], outputs["start_logits"]),
        (batch[features.END_POSITIONS], outputs["end_logits"]),
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


MASKED_LM = "masked_lm"
NEXT_SENTENCE = "next_sentence"
OBJECTIVES = (MASKED_LM, NEXT_SENTENCE)


def pretraining_weights(batch: dict) -> dict:
    """Weight of each objective in a batch: what its loss is divided by.

    Args:
        batch: tensors of `features.pretraining_schema` or `packed_schema`
            and `is_real_example`.

    Returns:
        masked_lm: float32 scalar, number of masked places; 1e-5 is added as
            in google-research/bert `run_pretraining.py`.
        next_sentence: float32 scalar, number of sequences.
    """
    return {
        MASKED_LM: ops.sum(batch[features.MASKED_LM_WEIGHTS]) + 1e-5,
        NEXT_SENTENCE: ops.sum(_next_sentence_weights(batch)),
    }


def pretraining_sums(batch: dict, outputs: dict) -> dict:
    """Sums of both objectives over a batch.

    Args:
        batch: as for `pretraining_weights`.
        outputs: of the pre-training model.

    Returns:
        for each objective, float32 scalars: `<objective>_loss`, the sum of
        cross entropies in nats; `<objective>_accuracy`, the number of right
        answers; `<objective>_weight`, what to divide both by.
    """
    weights = {
        MASKED_LM: batch[features.MASKED_LM_WEIGHTS],
        NEXT_SENTENCE: _next_sentence_weights(batch),
    }
    labels = {
        MASKED_LM: batch[features.MASKED_LM_IDS],
        NEXT_SENTENCE: batch[features.NEXT_SENTENCE_LABELS],
    }
    sums = {}
    for objective in OBJECTIVES:
        logits = outputs[f"{objective}_logits"]
        label, weight = labels[objective], weights[objective]
        logits = ops.reshape(logits, (*ops.shape(label), logits.shape[-1]))
        sums |= weighted_sums(objective, logits, label, weight)
    return sums


def weighted_sums(objective: str, logits, label, weight) -> dict:
    """Sums of an objective whose answers are classes.

    Args:
        objective: its name.
        logits: float32 [..., C].
        label, weight: int32 and float32 [...].

    Returns:
        see `pretraining_sums`.
    """
    found = fused_ops.elementwise(_loss_and_hit, logits, label)
    loss, hits = found[0], found[1]
    return {
        f"{objective}_loss": ops.sum(loss * weight),
        f"{objective}_accuracy": ops.sum(hits * weight),
        f"{objective}_weight": ops.sum(weight),
    }


def _next_sentence_weights(batch: dict):
    """float32 [B, K]; K = 1 in rows of one sequence."""
    if features.NEXT_SENTENCE_WEIGHTS in batch:
        return batch[features.NEXT_SENTENCE_WEIGHTS]
    return ops.expand_dims(batch[features.IS_REAL_EXAMPLE], 1)


def _loss_and_hit(logits, label):
    """Cross entropy, and 1 where the highest score is the label's.

    Of equal scores the first is the highest, as for argmax, which Keras
    computes in six passes over the scores.

    Args:
        logits: float32 [..., C].
        label: int32 [...].

    Returns:
        float32 [2, ...].
    """
    label = ops.expand_dims(label, -1)
    classes = ops.arange(logits.shape[-1], dtype=label.dtype)
    best = ops.max(logits, -1, keepdims=True)
    shifted = logits - ops.stop_gradient(best)
    own = ops.sum(ops.where(classes == label, shifted, 0.0), -1)
    loss = ops.log(ops.sum(ops.exp(shifted), -1)) - own
    before = ops.logical_and(shifted == 0.0, classes < label)
    hit = ops.logical_and(own == 0.0, ops.logical_not(ops.any(before, -1)))
    return ops.stack([loss, ops.cast(hit, "float32")])
