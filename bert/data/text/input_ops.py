"""Packs tokens to encoder inputs inside a graph; see `data.sequences`."""

import tensorflow as tf

from bert.data import feature_names, sequences


def pack_inputs(
    segments: list[tf.RaggedTensor],
    seq_length: int | tf.Tensor,
    *,
    cls_id: int,
    sep_id: int,
    pad_id: int = 0,
    truncate: str = sequences.HEAD,
) -> dict[str, tf.Tensor]:
    """Makes sequences `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`, padded.

    Truncates like `_truncate_seq_pair` of the original's run_classifier.py. It
    drops one token at a time from the end of the longer segment, or of the
    second segment if both have the same length.

    Args:
        segments: list of one or two tf.RaggedTensor. int32 [B, (tokens)] or
            [B, (words), (tokens)].
        seq_length: int or tensor. S, at least 3 for two segments, 2 for one.
        cls_id: int. Id of `[CLS]`.
        sep_id: int. Id of `[SEP]`.
        pad_id: int. Id of the padding. Default: 0.
        truncate: str. Part of a segment to keep, see
            `sequences.kept_at_start`. Default: HEAD.

    Returns:
        dict. The encoder's inputs, int32 [B, S] each. S is static if
        `seq_length` is a Python integer.
    """
    assert len(segments) in (1, 2), len(segments)
    segments = [
        s.merge_dims(1, 2) if s.ragged_rank == 2 else s for s in segments
    ]
    lengths = [tf.cast(s.row_lengths(), tf.int64) for s in segments]
    space = tf.cast(seq_length, tf.int64) - 1 - len(segments)
    if len(segments) == 1:
        kept = [tf.minimum(lengths[0], space)]
    else:
        # Each segment gets half of the space, and space the other leaves.
        first = tf.maximum(space - lengths[1], space - space // 2)
        second = tf.maximum(space - lengths[0], space // 2)
        kept = [tf.minimum(lengths[0], first), tf.minimum(lengths[1], second)]

    column = tf.ones_like(lengths[0], tf.int32)[:, tf.newaxis]
    parts = [cls_id * column]
    for segment, count in zip(segments, kept):
        starts = tf.cast(segment.row_starts(), tf.int64)
        first = sequences.kept_at_start(count, truncate)
        indices = tf.ragged.range(starts, starts + first)
        if truncate != sequences.HEAD:
            ends = starts + tf.cast(segment.row_lengths(), tf.int64)
            last = tf.ragged.range(ends - count + first, ends)
            indices = tf.concat([indices, last], axis=1)
        parts += [tf.gather(segment.values, indices), sep_id * column]
    rows = tf.concat(parts, axis=1)

    if tf.is_tensor(seq_length):
        shape = tf.stack([-1, seq_length])
    else:
        shape = tf.TensorShape([None, seq_length])

    lengths = tf.add_n(kept) + 1 + len(segments)
    mask = tf.sequence_mask(lengths, seq_length, tf.int32)
    ids = tf.reshape(rows.to_tensor(pad_id, shape=shape), tf.shape(mask))
    first = tf.sequence_mask(kept[0] + 2, seq_length, tf.int32)
    return {
        feature_names.INPUT_IDS: ids,
        feature_names.INPUT_MASK: mask,
        feature_names.SEGMENT_IDS: mask - first,
    }
