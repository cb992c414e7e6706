"""Multiplications and additions in the matrix products of a training step.

Forward and backward, which costs twice as much, without recomputation.
"""

from modeling.config import BertConfig


def nominal(config: BertConfig, rows: int, length: int, places: int) -> float:
    """FLOPs of a step that computes every layer at every position.

    They are what other systems compute, so rates in them can be compared.

    Args:
        config: sizes.
        rows: B.
        length: S.
        places: P, masked positions of a sequence.
    """
    layers = config.num_hidden_layers * _layer(config, rows, length, length)
    return 6 * (layers + _heads(config, rows, places))


def executed(config: BertConfig, rows: int, length: int, places: int) -> float:
    """FLOPs of a step as it is computed here: a hardware rate needs these.

    The last layer is computed where it is read: at [CLS] and at the masked
    positions. Keys and values are computed everywhere.

    Args:
        config: sizes.
        rows: B.
        length: S.
        places: P, masked positions of a sequence.
    """
    others = config.num_hidden_layers - 1
    layers = others * _layer(config, rows, length, length)
    layers += _layer(config, rows, length, 1 + places)
    return 6 * (layers + _heads(config, rows, places))


def _layer(config: BertConfig, rows: int, length: int, read: int) -> float:
    """Multiplications of a layer that is read at so many positions."""
    h, i = config.hidden_size, config.intermediate_size
    keys_and_values = 2 * length * h * h
    queries_and_output = 2 * read * h * h
    attention = 2 * read * length * h
    feed_forward = 2 * read * h * i
    products = keys_and_values + queries_and_output + attention + feed_forward
    return rows * products


def _heads(config: BertConfig, rows: int, places: int) -> float:
    """Multiplications of pooler, next sentence and masked LM."""
    h = config.hidden_size
    masked_lm = places * (h * h + h * config.vocab_size)
    return rows * (masked_lm + h * h + 2 * h)
