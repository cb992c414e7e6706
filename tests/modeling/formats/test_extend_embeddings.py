"""Embeddings are extended to more words."""

import numpy as np

from bert.modeling.formats import extend_embeddings

WORDS = "bert/embeddings/word_embeddings"
BIAS = "cls/predictions/output_bias"
POSITIONS = "bert/embeddings/position_embeddings"
VALUES = {
    WORDS: np.array([[0, 0], [2, 4], [4, 0], [1, 1]], np.float32),
    BIAS: np.array([0, 1, 3, 5], np.float32),
    POSITIONS: np.array([[1, 2], [3, 4], [5, 6]], np.float32),
    "bert/pooler/dense/bias": np.array([9, 9], np.float32),
}


def test_new_words_are_the_mean_of_their_tokens():
    changed = extend_embeddings.extend_vocabulary(VALUES, [0, 4], [[1, 2], [3]])
    expected = {
        **VALUES,
        WORDS: [[3, 2], [2, 4], [4, 0], [1, 1], [1, 1]],
        BIAS: [2, 1, 3, 5, 5],
    }
    assert set(changed) == set(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(changed[name], value)
        assert changed[name].dtype == np.float32


def test_a_model_without_masked_lm_head_gets_no_bias():
    encoder = {n: v for n, v in VALUES.items() if n != BIAS}
    changed = extend_embeddings.extend_vocabulary(encoder, [4], [[0]])
    assert set(changed) == set(encoder)
    assert changed[WORDS].shape == (5, 2)
