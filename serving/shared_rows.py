"""Texts that share rows, so that little of a batch is padding.

A text beside a much longer one would be padded to it: of sentences in any
order, 32 at a time, half of what is computed would be padding. Here they are
dealt out to rows, the longest first, to and fro, and none sees another:

    lengths 3 7 2 6 5 4    rows  7 2 | 6 3 | 5 4
"""

from collections.abc import Callable

import tensorflow as tf

from data import features
from serving import graphs

_ROW = 96  # pieces, of texts that are shorter; measured on two cores
_AT_ONCE = 4096  # pieces, for the memory


def logits(
    logits_of: Callable, inputs: dict[str, tf.Tensor], size: int
) -> tf.Tensor:
    """Logits of texts.

    Args:
        logits_of: inputs of a packed encoder, r rows with places of K
            `[CLS]` each -> float32 [r, K, size].
        inputs: of an encoder that is not packed, int32 [B, S].
        size: of a text's logits.

    Returns:
        float32 [B, size], in the order of the texts.
    """
    at, rows = _pack(inputs)
    count, width = tf.unstack(tf.shape(rows[features.INPUT_IDS]))
    several = tf.maximum(1, _AT_ONCE // tf.maximum(1, width))

    def answer(start, found):
        some = {name: x[start : start + several] for name, x in rows.items()}
        return start + several, tf.concat([found, logits_of(some)], 0)

    turns = tf.shape(rows[features.NEXT_SENTENCE_POSITIONS])[1]
    _, found = tf.while_loop(
        lambda start, _: start < count,
        answer,
        (0, tf.zeros([0, turns, size])),
        (tf.TensorShape([]), tf.TensorShape([None, None, size])),
    )
    return tf.gather_nd(found, at)


def _pack(inputs: dict) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Row and turn of each text, int32 [B, 2], and the rows."""
    mask = inputs[features.INPUT_MASK]
    columns = tf.range(tf.shape(mask)[1])
    lengths = tf.maximum(1, graphs.lengths(inputs))
    at, count = _deal(lengths)
    turns = tf.reduce_max(tf.concat([at[:, 1] + 1, [0]], 0))
    taken = tf.scatter_nd(at, lengths, [count, turns])
    first = tf.cumsum(taken, 1, exclusive=True)  # place of a text in its row
    width = tf.reduce_max(tf.concat([[1], tf.reduce_sum(taken, 1)], 0))

    pieces = tf.where(columns < lengths[:, tf.newaxis])  # [P, 2]
    text, place = tf.unstack(tf.cast(pieces, tf.int32), axis=1)
    row, turn = tf.unstack(tf.gather(at, text), axis=1)
    values = [
        tf.gather_nd(inputs[features.INPUT_IDS], pieces),
        tf.gather_nd(inputs[features.SEGMENT_IDS], pieces),
        place,
        tf.gather_nd(mask, pieces) * (turn + 1),
    ]
    to = tf.stack([row, tf.gather_nd(first, tf.gather(at, text)) + place], 1)
    grid = tf.scatter_nd(to, tf.stack(values, 1), [count, width, 4])
    ids, segments, places, sequences = tf.unstack(grid, axis=2)
    return at, {
        features.INPUT_IDS: ids,
        features.INPUT_MASK: tf.minimum(sequences, 1),
        features.SEGMENT_IDS: segments,
        features.POSITION_IDS: places,
        features.SEQUENCE_IDS: sequences,
        # Of a row with fewer texts the last is nobody's.
        features.NEXT_SENTENCE_POSITIONS: tf.minimum(first, width - 1),
    }


def _deal(lengths: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Row and turn of each text, int32 [B, 2], and the number of rows."""
    longest = tf.reduce_max(tf.concat([[_ROW], lengths], 0))
    count = -(-tf.reduce_sum(lengths) // longest)
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    turn = tf.range(tf.size(order)) // tf.maximum(1, count)
    place = tf.range(tf.size(order)) - turn * count
    row = tf.where(turn % 2 == 0, place, count - 1 - place)
    at = tf.stack([row, turn], 1)
    return tf.gather(at, tf.argsort(order)), count
