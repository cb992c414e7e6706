"""The file of predictions of run_similarity.py."""

import types

import numpy as np
import pytest

from bert.tasks.similarity.task import Similarity


@pytest.mark.parametrize("count", [2, 3, 4])
def test_each_further_text_is_compared_with_the_first(tmp_path, count):
    vectors = np.random.default_rng(7).normal(size=(5, count, 3))
    path = str(tmp_path / "predictions.tsv")
    task = types.SimpleNamespace(
        _settings=types.SimpleNamespace(do_predict=True),
        _folder=types.SimpleNamespace(file=lambda name: path),
        encode=lambda name: [],
        _vectors=lambda run, rows, name: vectors,
    )
    assert Similarity.predict(task, None) == [path]
    expected = [[x[0] @ other for other in x[1:]] for x in vectors]
    found = np.loadtxt(path, ndmin=2)
    np.testing.assert_allclose(found, expected, atol=1e-6)
