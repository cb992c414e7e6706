"""What is in a batch, and what it costs."""

from keras import ops

from data import features
from modeling.config import BertConfig


def batch_tokens(batch: dict):
    """float32 scalar, pieces of a batch that are not padding.

    Args:
        batch: `input_mask`, int32 [..., S].
    """
    return ops.sum(ops.cast(batch[features.INPUT_MASK], "float32"))


def pretraining_flops(
    config: BertConfig, rows: int, length: int, places: int
) -> float:
    """Multiplications and additions of one step, three times forward.

    Those of the matrix products, forward and backward, without recomputation.

    Args:
        config: sizes.
        rows: B.
        length: S.
        places: P, masked places of a row.
    """
    h, i = config.hidden_size, config.intermediate_size
    tokens = rows * length
    block = tokens * (4 * h * h + 2 * h * i) + 2 * tokens * length * h
    head = rows * places * (h * h + h * config.vocab_size) + rows * h * h
    return 3 * 2 * (config.num_hidden_layers * block + head)
