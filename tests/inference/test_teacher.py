"""Teachers: which students may learn from them, and resized vectors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert.common.errors import UserError
from bert.data.labels import CLASSES, MULTI_LABEL, REGRESSION, Labels
from bert.data.pooling import PoolingConfig
from bert.inference import teacher
from bert.tasks.classification.files import TextExample
from bert.tasks.classification.task import TextClassification
from bert.tasks.similarity.task import TextEmbedding
from tests.helpers.predictors import predictor_of

ABC = Labels(CLASSES, ("a", "b", "c"))


def classifier(labels=ABC, has_pairs=False):
    return TextClassification(None, labels, 17, has_pairs=has_pairs)


@pytest.mark.parametrize(
    ("of_teacher", "of_student"),
    [
        (ABC, ABC),
        (Labels(CLASSES, ("c", "a", "b")), ABC),
        (Labels(REGRESSION), Labels(REGRESSION)),
    ],
)
def test_labels_in_any_order_are_valid(of_teacher, of_student):
    teacher.check(classifier(of_teacher), classifier(of_student), "folder")


def test_a_teacher_may_read_one_text_or_two():
    """A published classifier does not say which."""
    for has_pairs in (False, True):
        student = classifier(has_pairs=has_pairs)
        teacher.check(classifier(has_pairs=None), student, "folder")


@pytest.mark.parametrize(
    ("of_teacher", "student", "message"),
    [
        (
            classifier(Labels(CLASSES, ("a", "d"))),
            classifier(),
            "folder: labels classes a, d; expected classes a, b, c, in any "
            "order; only one of both has b, c, d",
        ),
        (classifier(Labels(MULTI_LABEL, ABC.names)), classifier(), "multi"),
        (classifier(), classifier(has_pairs=True), "without text_b"),
        (
            TextEmbedding(None, PoolingConfig(), 17),
            classifier(),
            "a model of another task, similarity",
        ),
    ],
)
def test_another_task_is_an_error(of_teacher, student, message):
    with pytest.raises(UserError) as error:
        teacher.check(of_teacher, student, "folder")
    assert message in str(error.value)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
def test_resized_vectors_are_the_best_projection(size, rank, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(31, rank)) @ rng.normal(size=(rank, 7))
    x = x.astype("f4")
    found = teacher.resized(x, size)
    assert found.shape == (31, size)

    # The dot products of the truncated singular value decomposition.
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    kept = (u * s)[:, :size]
    kept /= np.maximum(np.linalg.norm(kept, axis=1, keepdims=True), 1e-12)
    np.testing.assert_allclose(found @ found.T, kept @ kept.T, atol=1e-3)


def test_outputs_that_are_not_finite_are_not_learned():
    predictor = predictor_of()
    predictor.task, student = classifier(), classifier()
    predictor.compute = lambda *_: [(None, np.float32([0, np.nan, 1]))]
    predictor.task.encode = lambda examples: []
    with pytest.raises(UserError, match="^teacher: outputs .* are not finite"):
        teacher.targets(predictor, student, [TextExample("1", "a", "", None)])
