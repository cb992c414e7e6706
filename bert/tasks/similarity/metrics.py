"""Metrics of embeddings, named as in sentence-transformers."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

_AT, _MOST = (1, 3, 5, 10), 10
_BLOCK = 256  # queries to compare at once

Vectors: TypeAlias = NDArray | sparse.csr_array  # [N, D], L2-normalized


def bags(texts: list[list[int]]) -> sparse.csr_array:
    """Makes bag-of-words vectors; their cosine is the token overlap.

    Args:
        texts: N lists of token ids.

    Returns:
        [N, V]. 1 for each token of a text, L2-normalized.
    """
    kinds = [sorted({*ids}) for ids in texts]
    sizes = [len(ids) for ids in kinds]
    columns = np.concatenate(kinds).astype(np.int64)
    values = np.repeat(1 / np.sqrt(np.maximum(1, sizes)), sizes)
    return sparse.csr_array((values, columns, np.cumsum([0, *sizes])))


def correlations(
    vectors: Vectors, numbers: NDArray, scores: NDArray
) -> dict[str, float]:
    """Correlations of cosines and scores; 0 if one of them is constant.

    Args:
        vectors: the embeddings of the texts.
        numbers: int [N, 2]. Indices of the two texts of each row.
        scores: float [N].
    """
    a, b = vectors[numbers[:, 0]], vectors[numbers[:, 1]]
    cosines = np.asarray((a * b).sum(1))
    result = {"pearson_cosine": 0.0, "spearman_cosine": 0.0}
    if np.ptp(cosines) > 0 < np.ptp(scores):
        result = {
            "pearson_cosine": stats.pearsonr(scores, cosines).statistic,
            "spearman_cosine": stats.spearmanr(scores, cosines).statistic,
        }
    return {name: float(value) for name, value in result.items()}


def retrieval(vectors: Vectors, numbers: NDArray) -> dict[str, float]:
    """Retrieves the second text of each row among the texts of all rows.

    Queries are first texts; candidates are all other texts. As in training, a
    query is not its own negative, although it may also be a candidate.

    Args:
        vectors: the embeddings of the texts.
        numbers: int [N, T]. Indices of the texts of each row.

    Returns:
        metric -> mean over the distinct queries.
    """
    queries, rows = np.unique(numbers[:, 0], return_inverse=True)
    others = np.unique(numbers[:, 1:])
    columns = np.searchsorted(others, numbers[:, 1])
    pairs = (np.ones(len(rows)), (rows, columns))
    belongs = sparse.csr_array(pairs, shape=(len(queries), len(others)))

    hits = []
    for start in range(0, len(queries), _BLOCK):
        block = slice(start, start + _BLOCK)
        cosines = vectors[queries[block]] @ vectors[others].T
        if sparse.issparse(cosines):
            cosines = cosines.toarray()
        of_block = belongs[block].toarray() > 0
        is_query = others == queries[block][:, np.newaxis]
        cosines[is_query & ~of_block] = -np.inf
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :_MOST]
        hits.append(np.take_along_axis(of_block, best, 1))
    return _of_hits(np.concatenate(hits), np.diff(belongs.indptr))


def _of_hits(hits: NDArray, relevant: NDArray) -> dict[str, float]:
    """Computes retrieval metrics.

    Args:
        hits: bool [Q, K]. Whether each of the K best candidates is relevant.
        relevant: int [Q]. Number of relevant candidates of each query.
    """
    result = {
        f"cosine_accuracy@{k}": float(hits[:, :k].any(1).mean()) for k in _AT
    }
    ranks = 1 + hits.argmax(1)
    first = np.where(hits.any(1), 1 / ranks, 0.0)
    result[f"cosine_mrr@{_MOST}"] = float(first.mean())

    gains = 1 / np.log2(np.arange(2, _MOST + 2))
    best = np.cumsum(gains)[np.minimum(relevant, _MOST) - 1]
    gained = (hits * gains[: hits.shape[1]]).sum(1)
    result[f"cosine_ndcg@{_MOST}"] = float((gained / best).mean())
    return result
