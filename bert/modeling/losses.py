"""Base class of the losses, and the losses of pre-training.

A loss is a sum over a batch, with the number of correct predictions.
"""

from keras import ops

from bert.data import feature_names
from bert.modeling import fused_ops


class Loss:
    """Base class of the losses: sums over a batch, and their divisor.

    The loss of a step is `sums(...)["loss"] / weight(...)`, both over the
    whole batch, so that it does not depend on the distribution of the examples.

    Attributes:
        name: str. Name in logs and metrics.
        has_accuracy: bool. Whether `sums` counts correct predictions. Default:
            True.
        compares_rows: bool. Whether the rows of a batch are compared, so that
            `sums` needs all of them. Default: False.
    """

    name: str
    has_accuracy = True
    compares_rows = False

    def weight(self, batch: dict):
        """Weight of a batch, the divisor of its loss, float32 scalar.

        Args:
            batch: dict. Tensors of the task's schema.
        """
        raise NotImplementedError

    def sums(self, batch: dict, outputs: dict) -> dict:
        """Sums over a batch, or a part of it, float32 scalars.

        Args:
            batch: dict. See `weight`.
            outputs: dict. Outputs of the network.

        Returns:
            dict of:
                loss: sum of losses, such as cross entropies in nats.
                accuracy: number of correct predictions, with `has_accuracy`.
                weight: divisor of both.
        """
        raise NotImplementedError


class MaskedLM(Loss):
    """Loss of the masked tokens, for batches of pre-training.

    The weight is the number of masked positions plus 1e-5, as in
    google-research/bert `run_pretraining.py`.
    """

    name = "masked_lm"

    def weight(self, batch: dict):
        """Weight of a batch; see `Loss`."""
        return ops.sum(batch[feature_names.MASKED_LM_WEIGHTS]) + 1e-5

    def sums(self, batch: dict, outputs: dict) -> dict:
        """Sums over a batch; see `Loss`."""
        label = batch[feature_names.MASKED_LM_IDS]
        weight = batch[feature_names.MASKED_LM_WEIGHTS]
        return _of_logits(outputs["masked_lm_logits"], label, weight)


class NextSentence(Loss):
    """Loss of next sentence prediction; the weight is the number of pairs."""

    name = "next_sentence"

    def weight(self, batch: dict):
        """Weight of a batch; see `Loss`."""
        return ops.sum(_next_sentence_weights(batch))

    def sums(self, batch: dict, outputs: dict) -> dict:
        """Sums over a batch; see `Loss`."""
        label = batch[feature_names.NEXT_SENTENCE_LABELS]
        weight = _next_sentence_weights(batch)
        return _of_logits(outputs["next_sentence_logits"], label, weight)


PRETRAINING = (MaskedLM(), NextSentence())


def _of_logits(logits, label, weight) -> dict:
    # Next-sentence logits are [B, 2], labels [B, 1], unless packed.
    logits = ops.reshape(logits, (*ops.shape(label), logits.shape[-1]))
    return weighted_sums(logits, label, weight)


def batch_tokens(batch: dict):
    """Number of tokens of a batch without padding, float32 scalar.

    Args:
        batch: dict. `input_mask`, int32 [..., S].
    """
    return ops.sum(ops.cast(batch[feature_names.INPUT_MASK], "float32"))


def weighted_sums(logits, label, weight) -> dict:
    """Sums of cross entropies and correct predictions; see `Loss.sums`.

    Args:
        logits: float32 [..., C].
        label: int32 [...].
        weight: float32 [...].
    """
    found = _loss_and_hit(logits, label)
    loss, hits = found[0], found[1]
    return {
        "loss": ops.sum(loss * weight),
        "accuracy": ops.sum(hits * weight),
        "weight": ops.sum(weight),
    }


def _next_sentence_weights(batch: dict):
    """float32 [B, K]; K = 1 if not packed."""
    if feature_names.NEXT_SENTENCE_WEIGHTS in batch:
        return batch[feature_names.NEXT_SENTENCE_WEIGHTS]
    return ops.expand_dims(batch[feature_names.IS_REAL_EXAMPLE], 1)


@fused_ops.elementwise
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
