"""Losses of text embeddings, over the rows of all devices.

A row of a batch has T texts. The embeddings are gathered, so that a loss does
not depend on the distribution of the rows.
"""

import tensorflow as tf

from bert.data import feature_names
from bert.modeling import task_losses
from bert.modeling.losses import Loss
from bert.modeling.task_heads import COSENT, COSINE, RANKING

_MASKED = -1e9  # score of masked pairs


class EmbeddingLoss(Loss):
    """Loss of scores of pairs, or of texts that belong together.

    Args:
        kind: str. "cosent", "cosine" or "ranking".
        scale: float. Factor of the cosines.
        sizes: tuple of int. Matryoshka sizes (Kusupati et al. 2022,
            arXiv:2205.13147). The loss is summed over embeddings truncated to
            each size.
    """

    name, has_accuracy = task_losses.LABELS, False

    def __init__(self, kind: str, scale: float, sizes: tuple[int, ...]):
        self._loss, self.scale, self.sizes = _LOSSES[kind], scale, sizes
        self.compares_rows = kind != COSINE

    def weight(self, batch: dict):
        """Number of rows of a batch; see `Loss`."""
        return _num_rows(batch)

    def sums(self, batch: dict, outputs: dict) -> dict:
        """Sums over a batch; see `Loss`.

        Args:
            batch: dict. label_ids (scores), float32 [b]; text_numbers, int32
                [b, T]; is_real_example, [b].
            outputs: dict. vectors, float32 [b, T, H].
        """
        vectors = outputs["vectors"]
        truncated = (
            tf.math.l2_normalize(vectors[..., :size], -1) for size in self.sizes
        )
        values = [self._loss(batch, x, self.scale) for x in truncated]
        return {"loss": tf.add_n(values), "weight": _num_rows(batch)}


class TeacherDistance(Loss):
    """Squared distances to a teacher's vectors of length 1.

    A distance is a sum over the D values: their mean would have gradients
    below the epsilon of Adam.
    """

    name, has_accuracy = task_losses.LABELS, False

    def weight(self, batch: dict):
        """Number of rows of a batch; see `Loss`."""
        return _num_rows(batch)

    def sums(self, batch: dict, outputs: dict) -> dict:
        """Sums over a batch of the means over the T texts; see `Loss`.

        Args:
            batch: dict. teacher_outputs, float32 [b, T * D]; is_real_example,
                [b].
            outputs: dict. vectors, float32 [b, T, D].
        """
        vectors = tf.math.l2_normalize(outputs["vectors"], -1)
        teacher = batch[feature_names.TEACHER_OUTPUTS]
        error = vectors - tf.reshape(teacher, tf.shape(vectors))
        distances = tf.reduce_sum(error * error, -1)
        weight = tf.cast(batch[feature_names.IS_REAL_EXAMPLE], tf.float32)
        each = tf.reduce_mean(distances, -1) * weight
        return {"loss": tf.reduce_sum(each), "weight": tf.reduce_sum(weight)}


def _num_rows(batch: dict) -> tf.Tensor:
    real = batch[feature_names.IS_REAL_EXAMPLE]
    return tf.reduce_sum(tf.cast(real, tf.float32))


def all_rows(part: tf.Tensor) -> tf.Tensor:
    """Gathers the rows of all replicas; called in replica context.

    The gradient of a replica's rows is summed over all replicas. It is an
    all-reduce, the only operation across devices that XLA compiles.

    Args:
        part: [b, ...]. The rows of this replica.

    Returns:
        [R * b, ...], the rows of R replicas, in order.
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


def _cosine(batch: dict, vectors: tf.Tensor, scale: float) -> tf.Tensor:
    """Squared errors of the cosines."""
    error = _cosines(vectors) - batch[feature_names.LABEL_IDS]
    return tf.reduce_sum(error * error)


def _cosent(batch: dict, vectors: tf.Tensor, scale: float) -> tf.Tensor:
    """log(1 + sum of exp(scale (cos_i - cos_j))), for score_i < score_j.

    Su 2022, https://kexue.fm/archives/8847. The batch has one loss, which is
    counted once for each row.
    """
    cosines = _cosines(vectors)
    labels = all_rows(batch[feature_names.LABEL_IDS])
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

    Multiple negatives ranking (Henderson et al. 2017, arXiv:1705.00652). Two
    kinds of false negatives are masked: copies of the row's own texts, and
    positives of the same anchor in another row.
    """
    numbers = batch[feature_names.TEXT_NUMBERS]
    whole = all_rows(vectors)  # [B, T, H]
    whole_numbers = all_rows(numbers)

    # The second texts of all rows, then the third texts, and so on.
    others = tf.concat(tf.unstack(whole[:, 1:], axis=1), 0)
    scores = scale * tf.matmul(vectors[:, 0], others, transpose_b=True)
    names = tf.concat(tf.unstack(whole_numbers[:, 1:], axis=1), 0)

    # Copies of own texts, and second texts of rows with the same anchor.
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
