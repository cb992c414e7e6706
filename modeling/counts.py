"""What is in a batch."""

from keras import ops

from data import features


def batch_tokens(batch: dict):
    """float32 scalar, pieces of a batch that are not padding.

    Args:
        batch: `input_mask`, int32 [..., S].
    """
    return ops.sum(ops.cast(batch[features.INPUT_MASK], "float32"))
