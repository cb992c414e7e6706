"""Pre-training losses: sums of losses and correct predictions over a batch."""

from keras import ops

from bert.data import feature_names
from bert.modeling import fused_ops

MASKED_LM = "masked_lm"
NEXT_SENTENCE = "next_sentence"
OBJECTIVES = (MASKED_LM, NEXT_SENTENCE)


def pretraining_weights(batch: dict) -> dict:
    """Weight of each objective in a batch: the divisor of its loss.

    Args:
        batch: dict. Tensors of `feature_names.pretraining_schema` or
            `packed_schema`, and `is_real_example`.

    Returns:
        Dict of:
            masked_lm: float32 scalar. Number of masked positions plus 1e-5, as
                in google-research/bert `run_pretraining.py`.
            next_sentence: float32 scalar. Number of sequences.
    """
    return {
        MASKED_LM: ops.sum(batch[feature_names.MASKED_LM_WEIGHTS]) + 1e-5,
        NEXT_SENTENCE: ops.sum(_next_sentence_weights(batch)),
    }


def pretraining_sums(batch: dict, outputs: dict) -> dict:
    """Sums of both objectives over a batch.

    Args:
        batch: dict. See `pretraining_weights`.
        outputs: dict. Outputs of the pre-training model.

    Returns:
        Dict of float32 scalars for each objective:
            `<objective>_loss`: sum of cross entropies in nats.
            `<objective>_accuracy`: number of correct predictions.
            `<objective>_weight`: divisor of both.
    """
    of_masks = batch[feature_names.MASKED_LM_WEIGHTS]
    of_pairs = _next_sentence_weights(batch)
    sums = {}
    for objective, name, weight in (
        (MASKED_LM, feature_names.MASKED_LM_IDS, of_masks),
        (NEXT_SENTENCE, feature_names.NEXT_SENTENCE_LABELS, of_pairs),
    ):
        logits, label = outputs[f"{objective}_logits"], batch[name]

        # Next-sentence logits are [B, 2], labels [B, 1], unless packed.
        logits = ops.reshape(logits, (*ops.shape(label), logits.shape[-1]))
        sums |= weighted_sums(objective, logits, label, weight)
    return sums


def batch_tokens(batch: dict):
    """Number of tokens of a batch without padding, float32 scalar.

    Args:
        batch: dict. `input_mask`, int32 [..., S].
    """
    return ops.sum(ops.cast(batch[feature_names.INPUT_MASK], "float32"))


def weighted_sums(objective: str, logits, label, weight) -> dict:
    """Sums of a classification objective.

    Args:
        objective: str. Name of the objective.
        logits: float32 [..., C].
        label: int32 [...].
        weight: float32 [...].

    Returns:
        Dict, see `pretraining_sums`.
    """
    found = fused_ops.fused_elementwise(_loss_and_hit, logits, label)
    loss, hits = found[0], found[1]
    return {
        f"{objective}_loss": ops.sum(loss * weight),
        f"{objective}_accuracy": ops.sum(hits * weight),
        f"{objective}_weight": ops.sum(weight),
    }


def _next_sentence_weights(batch: dict):
    """float32 [B, K]; K = 1 if not packed."""
    if feature_names.NEXT_SENTENCE_WEIGHTS in batch:
        return batch[feature_names.NEXT_SENTENCE_WEIGHTS]
    return ops.expand_dims(batch[feature_names.IS_REAL_EXAMPLE], 1)


def _loss_and_hit(logits, label):
    """Cross entropy, and 1 where the label has the highest logit.

    The first of equal logits counts as the highest, as in argmax. Keras'
    argmax would take six passes over the logits.

    Args:
        logits: float32 [..., C].
        label: int32 [...].

    Returns:
        float32 [2, ...].
    """
    label = ops.expand_dims(label, -1)
    classes = ops.arange(logits.shape[-1], dtype=label.dtype)

    # The shift does not change the loss, and keeps exp from overflowing.
    best = ops.max(logits, -1, keepdims=True)
    shifted = logits - ops.stop_gradient(best)
    own = ops.sum(ops.where(classes == label, shifted, 0.0), -1)
    loss = ops.log(ops.sum(ops.exp(shifted), -1)) - own
    before = ops.logical_and(shifted == 0.0, classes < label)
    hit = ops.logical_and(own == 0.0, ops.logical_not(ops.any(before, -1)))
    return ops.stack([loss, ops.cast(hit, "float32")])
