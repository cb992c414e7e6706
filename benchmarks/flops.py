"""FLOPs of the matrix products of a training step.

They include the backward pass, which costs twice the forward pass, but no
recomputation.
"""

from bert.modeling.config import BertConfig


def nominal(
    config: BertConfig, batch_size: int, length: int, masks: int
) -> float:
    """FLOPs of a step that computes every layer at every position.

    Other systems compute this much, so rates are comparable.

    Args:
        config: sizes of the network.
        batch_size: B.
        length: S.
        masks: P, masked positions per sequence.
    """
    layers = config.num_hidden_layers * _layer(
        config, batch_size, length, length
    )
    return 6 * (layers + _heads(config, batch_size, masks))


def executed(
    config: BertConfig, batch_size: int, length: int, masks: int
) -> float:
    """FLOPs of a step as it is executed here, for rates of the hardware.

    The last layer is computed only at [CLS] and the masked positions; its
    keys and values are computed everywhere.

    Args:
        config: sizes of the network.
        batch_size: B.
        length: S.
        masks: P, masked positions per sequence.
    """
    others = config.num_hidden_layers - 1
    layers = others * _layer(config, batch_size, length, length)
    layers += _layer(config, batch_size, length, 1 + masks)
    return 6 * (layers + _heads(config, batch_size, masks))


def _layer(
    config: BertConfig, batch_size: int, length: int, read: int
) -> float:
    """Multiplications of a layer that is read at `read` positions."""
    h, i = config.hidden_size, config.intermediate_size
    keys_and_values = 2 * length * h * h
    queries_and_output = 2 * read * h * h
    attention = 2 * read * length * h
    feed_forward = 2 * read * h * i
    products = keys_and_values + queries_and_output + attention + feed_forward
    return batch_size * products


def _heads(config: BertConfig, batch_size: int, masks: int) -> float:
    """Multiplications of pooler, next sentence and masked LM."""
    h = config.hidden_size
    masked_lm = masks * (h * h + h * config.vocab_size)
    return batch_size * (masked_lm + h * h + 2 * h)
