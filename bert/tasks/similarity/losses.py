"""Losses of vectors of texts, over the rows of all devices.

A row of a batch has T texts. The vectors are gathered, so that a loss does
not depend on how the rows are distributed.
"""

import functools
from collections.abc import Callable

import tensorflow as tf

from bert.data import features
from bert.modeling import task_losses
from bert.tasks.similarity.examples import TEXT_NUMBERS
from bert.tasks.similarity.settings import COSENT, COSINE, RANKING

_MASKED = -1e9  # score of what is no negative


def sums_of(
    loss: str, scale: float, sizes: tuple[int, ...]
) -> Callable[[dict, dict], dict]:
    """Makes the `batch_sums` of a task.

    Args:
        loss: name of a loss.
        scale: factor of the cosines.
        sizes: the loss is the sum of those of the first `size` numbers of
            each vector (Kusupati et al. 2022, arXiv:2205.13147).

    Returns:
        batch, outputs -> sums over its rows: `labels_loss`, `labels_weight`.
        The batch has label_ids, the scores, float32 [b]; text_numbers, int32
        [b, T]; is_real_example, [b]. The outputs have vectors, float32
        [b, T, H].
    """
    return functools.partial(_sums, _LOSSES[loss], scale, sizes)


def all_rows(part: tf.Tensor) -> tf.Tensor:
    """Gathers the rows of all replicas, in a replica's step.

    Its gradient is the sum over replicas, of the own rows. It is an
    all-reduce, as XLA compiles no other operation of several devices.

    Args:
        part: [b, ...], the rows of this replica.

    Returns:
        [R * b, ...], R replicas, in their order.
    """
    context = tf.distribute.get_replica_context()
    count = context.num_replicas_in_sync
    if count == 1:
        return part
    is_here = tf.range(count) == context.replica_id_in_sync_group
    is_here = tf.reshape(is_here, [count] + [1] * part.shape.rank)
    rows = tf.cast(is_here, part.dtype) * part
    rows = context.all_reduce(tf.distribute.ReduceOp.SUM, rows)
    return tf.reshape(rows, tf.concat([[-1], tf.shape(part)[1:]], 0))


def _sums(
    loss: Callable,
    scale: float,
    sizes: tuple[int, ...],
    batch: dict,
    outputs: dict,
) -> dict:
    values = [
        loss(
            batch, tf.math.l2_normalize(outputs["vectors"][..., :n], -1), scale
        )
        for n in sizes
    ]
    weight = tf.cast(batch[features.IS_REAL_EXAMPLE], tf.float32)
    return {
        f"{task_losses.LABELS}_loss": tf.add_n(values),
        f"{task_losses.LABELS}_weight": tf.reduce_sum(weight),
    }


def _cosine(batch: dict, vectors: tf.Tensor, scale: float) -> tf.Tensor:
    """Squared errors of the cosines."""
    error = _cosines(vectors) - batch[features.LABEL_IDS]
    return tf.reduce_sum(error * error)


def _cosent(batch: dict, vectors: tf.Tensor, scale: float) -> tf.Tensor:
    """log(1 + sum of exp(scale (cos_i - cos_j))) over all i rated below j.

    Su 2022, https://kexue.fm/archives/8847. It is one number for the batch,
    which each row counts.
    """
    cosines = _cosines(vectors)
    labels = all_rows(batch[features.LABEL_IDS])
    whole = scale * all_rows(cosines)
    excess = tf.where(
        labels[:, tf.newaxis] < labels,
        whole[:, tf.newaxis] - whole,
        _MASKED,
    )
    terms = tf.concat([[0.0], tf.reshape(excess, [-1])], 0)
    count = tf.cast(tf.size(cosines), tf.float32)
    return count * tf.reduce_logsumexp(terms)


def _ranking(batch: dict, vectors: tf.Tensor, scale: float) -> tf.Tensor:
    """Cross entropies of the second text among the others of all rows.

    Multiple negatives ranking (Henderson et al. 2017, arXiv:1705.00652). A
    text is no negative of a row that has it already, or of the text that it
    belongs to in another row.
    """
    numbers = batch[TEXT_NUMBERS]
    whole = all_rows(vectors)  # [B, T, H]
    whole_numbers = all_rows(numbers)

    # The second texts of all rows, then their third texts, and so on.
    others = tf.concat(tf.unstack(whole[:, 1:], axis=1), 0)
    scores = scale * tf.matmul(vectors[:, 0], others, transpose_b=True)
    names = tf.concat(tf.unstack(whole_numbers[:, 1:], axis=1), 0)

    # Equal texts, and the second texts of rows with the same first one.
    anchor, positive = numbers[:, :1], numbers[:, 1:2]
    same_anchor = anchor == whole_numbers[:, 0]
    rest = tf.size(names) - tf.shape(same_anchor)[1]
    is_masked = (names == anchor) | (names == positive)
    is_masked |= tf.pad(same_anchor, [[0, 0], [0, rest]])

    context = tf.distribute.get_replica_context()
    replica = tf.cast(context.replica_id_in_sync_group, tf.int32)
    size = tf.shape(numbers)[0]
    label = replica * size + tf.range(size)
    is_label = tf.range(tf.size(names)) == label[:, tf.newaxis]
    scores = tf.where(is_masked & ~is_label, _MASKED, scores)
    return tf.reduce_sum(
        tf.nn.sparse_softmax_cross_entropy_with_logits(label, scores)
    )


def _cosines(vectors: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(vectors[:, 0] * vectors[:, 1], -1)


_LOSSES = {COSENT: _cosent, COSINE: _cosine, RANKING: _ranking}
