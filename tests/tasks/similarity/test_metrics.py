"""Metrics of vectors, against a plain search."""

import numpy as np
import pytest
from scipy import stats

from bert.data.pooling import PoolingConfig
from bert.tasks.similarity import metrics

# The second row repeats a query, which then has two texts that belong to it.
# Third texts belong to no query.
NUMBERS = np.arange(87).reshape(3, 29).T.copy()
NUMBERS[1, 0] = NUMBERS[0, 0]
NUMBERS[3, 1] = NUMBERS[2, 1]


def unit(x):
    return PoolingConfig(normalize=True).embed(x, None)


VECTORS = unit(np.random.default_rng(7).normal(size=(87, 3)))
VECTORS[29:58] = unit(VECTORS[29:58] + 2 * VECTORS[:29])


def test_retrieval_equals_a_plain_search(monkeypatch):
    monkeypatch.setattr(metrics, "_BLOCK", 11)
    belongs = {}
    for query, text, _ in NUMBERS:
        belongs.setdefault(query, set()).add(text)
    others, expected = sorted({*NUMBERS[:, 1:].flat}), []
    for query, texts in belongs.items():
        ranked = sorted(others, key=lambda x: -VECTORS[query] @ VECTORS[x])
        hits = [x in texts for x in ranked[:10]]
        gains = [hit / np.log2(i + 2) for i, hit in enumerate(hits)]
        ideal = sum(1 / np.log2(i + 2) for i in range(len(texts)))
        first = hits.index(True) + 1 if any(hits) else np.inf
        row = [first <= k for k in (1, 3, 5, 10)]
        expected.append([*row, 1 / first, sum(gains) / ideal])
    found = metrics.retrieval(VECTORS, NUMBERS)
    assert [*found] == [
        *(f"cosine_accuracy@{k}" for k in (1, 3, 5, 10)),
        "cosine_mrr@10",
        "cosine_ndcg@10",
    ]
    assert 0 < found["cosine_accuracy@1"] < found["cosine_accuracy@10"] <= 1
    np.testing.assert_allclose([*found.values()], np.mean(expected, 0))


def test_a_query_is_not_its_own_wrong_answer():
    """Pairs in both orders; the text of row 2 is its own second text."""
    numbers = np.array([[0, 1], [1, 0], [2, 2], [3, 4]])
    vectors = np.eye(5)
    vectors[1] = [0.8, 0.6, 0, 0, 0]
    vectors[4] = [0, 0, 0, 0.8, 0.6]
    assert metrics.retrieval(vectors, numbers)["cosine_accuracy@1"] == 1
    bags = metrics.bags([[7, 5], [7, 3], [2], [4, 9], [4, 8]])
    assert metrics.retrieval(bags, numbers)["cosine_accuracy@1"] == 1


def test_correlations():
    scores = np.arange(29.0) ** 2
    cosines = (VECTORS[NUMBERS[:, 0]] * VECTORS[NUMBERS[:, 1]]).sum(1)
    found = metrics.correlations(VECTORS, NUMBERS, scores)
    assert found == {
        "pearson_cosine": pytest.approx(stats.pearsonr(scores, cosines)[0]),
        "spearman_cosine": pytest.approx(stats.spearmanr(scores, cosines)[0]),
    }
    equal = np.ones_like(VECTORS)
    for vectors, one in ((VECTORS, scores * 0), (equal, scores)):
        found = metrics.correlations(vectors, NUMBERS, one)
        assert {*found.values()} == {0}


def test_bags_are_compared_by_their_words():
    """A word counts once; texts without words are like no other."""
    bags = metrics.bags([[7, 5, 7], [5, 3], [], [3]])
    expected = [[1, 0.5, 0, 0], [0.5, 1, 0, 0.5**0.5], [0] * 4]
    np.testing.assert_allclose((bags @ bags.T).toarray()[:3], expected)
    found = metrics.retrieval(bags, np.array([[0, 1], [3, 2]]))
    assert found["cosine_accuracy@1"] == 0.5
