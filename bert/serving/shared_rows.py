"""Inference on texts packed into shared rows, with little padding.

A text in a batch is padded to the longest one: in batches of 32 sentences in
random order, half of the computation would be padding. Here texts are
distributed over rows, longest first, in alternating directions, and attention
does not cross texts:

    lengths 3 7 2 6 5 4    rows  7 2 | 6 3 | 5 4
"""

from collections.abc import Callable

import tensorflow as tf

from bert.data import features
from bert.serving import graphs

_ROW = 96  # minimum length of a row in tokens; measured on two cores
_AT_ONCE = 4096  # tokens computed at once, to limit memory


def logits(
    logits_of: Callable, inputs: dict[str, tf.Tensor], size: int
) -> tf.Tensor:
    """Computes the logits of texts in shared rows.

    Args:
        logits_of: inputs of a packed encoder, r rows with the positions of K
            `[CLS]` each -> float32 [r, K, size].
        inputs: inputs of an encoder without packing, int32 [B, S].
        size: number of logits of a text.

    Returns:
        float32 [B, size], in the order of the texts.
    """
    slots, rows = _pack(inputs)
    count, width = tf.unstack(tf.shape(rows[features.INPUT_IDS]))
    several = tf.maximum(1, _AT_ONCE // tf.maximum(1, width))

    def answer(start, done):
        part = {name: x[start : start + several] for name, x in rows.items()}
        return start + several, tf.concat([done, logits_of(part)], 0)

    slots_per_row = tf.shape(rows[features.NEXT_SENTENCE_POSITIONS])[1]
    _, values = tf.while_loop(
        lambda start, _: start < count,
        answer,
        (0, tf.zeros([0, slots_per_row, size])),
        (tf.TensorShape([]), tf.TensorShape([None, None, size])),
    )
    return tf.gather_nd(values, slots)


def _pack(inputs: dict) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Row and slot of each text, int32 [B, 2], and the inputs of the rows."""
    mask = inputs[features.INPUT_MASK]
    columns = tf.range(tf.shape(mask)[1])
    lengths = tf.maximum(1, graphs.lengths(inputs))
    slots, count = _assign(lengths)

    slots_per_row = tf.reduce_max(tf.concat([slots[:, 1] + 1, [0]], 0))
    taken = tf.scatter_nd(slots, lengths, [count, slots_per_row])
    first = tf.cumsum(taken, 1, exclusive=True)  # offset of a text in its row
    width = tf.reduce_max(tf.concat([[1], tf.reduce_sum(taken, 1)], 0))

    # P tokens of all texts, without padding, and their places in the rows.
    tokens = tf.where(columns < lengths[:, tf.newaxis])  # [P, 2]
    text, position = tf.unstack(tf.cast(tokens, tf.int32), axis=1)
    row, slot = tf.unstack(tf.gather(slots, text), axis=1)
    values = [
        tf.gather_nd(inputs[features.INPUT_IDS], tokens),
        tf.gather_nd(inputs[features.SEGMENT_IDS], tokens),
        position,
        tf.minimum(1, tf.gather_nd(mask, tokens)) * (slot + 1),
    ]
    offset = tf.gather_nd(first, tf.gather(slots, text))
    target = tf.stack([row, offset + position], 1)

    # Sequence 0 is the padding, so texts are numbered from 1.
    grid = tf.scatter_nd(target, tf.stack(values, 1), [count, width, 4])
    ids, segments, positions, sequences = tf.unstack(grid, axis=2)
    return slots, {
        features.INPUT_IDS: ids,
        features.INPUT_MASK: tf.minimum(sequences, 1),
        features.SEGMENT_IDS: segments,
        features.POSITION_IDS: positions,
        features.SEQUENCE_IDS: sequences,
        # A row with fewer texts has an unused last slot.
        features.NEXT_SENTENCE_POSITIONS: tf.minimum(first, width - 1),
    }


def _assign(lengths: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Row and slot of each text, int32 [B, 2], and the number of rows."""
    longest = tf.reduce_max(tf.concat([[_ROW], lengths], 0))
    count = -(-tf.reduce_sum(lengths) // longest)

    # Rows are filled there and back: 0 1 2, 2 1 0, 0 1 2.
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    slot = tf.range(tf.size(order)) // tf.maximum(1, count)
    index = tf.range(tf.size(order)) - slot * count
    row = tf.where(slot % 2 == 0, index, count - 1 - index)

    slots = tf.stack([row, slot], 1)
    return tf.gather(slots, tf.argsort(order)), count
