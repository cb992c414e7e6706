import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from bert.common.errors import UserError
from bert.data.labels import CLASSES, MULTI_LABEL, Labels
from bert.tasks.classification import class_weights

GOLD = np.array([0, 2, 0, 0, 2, 0, 0])


def test_balanced_classes_weigh_as_in_scikit_learn():
    labels = Labels(CLASSES, ("a", "b", "c"))
    # A label without texts is no class to scikit-learn.
    expected = compute_class_weight(
        "balanced", classes=np.array([0, 2]), y=GOLD
    )
    a, b, c = class_weights.of_labels(("balanced",), labels, GOLD)
    np.testing.assert_allclose([a, c], expected * 2 / 3)
    assert b == 1.0


def test_texts_with_a_label_weigh_as_those_without():
    labels = Labels(MULTI_LABEL, ("a", "b", "c"))
    gold = np.array([[1, 1, 0], [0, 1, 0], [0, 1, 0], [0, 1, 0], [0, 1, 0]])
    found = class_weights.of_labels(("balanced",), labels, gold)
    assert found == (4.0, 1.0, 1.0)


def test_labels_that_are_not_named_weigh_one():
    labels = Labels(CLASSES, ("a", "b=c", "d"))
    found = class_weights.of_labels((" b=c=2.5", "a=.5"), labels, GOLD)
    assert found == (0.5, 2.5, 1.0)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("x=2", "balanced, or name=weight .* names a, b"),
        ("balance", "balanced, or"),
        ("a=0", "above 0"),
        ("a=nan", "above 0"),
        ("a=", "above 0"),
    ],
)
def test_mistakes_are_told(given, expected):
    labels = Labels(CLASSES, ("a", "b"))
    with pytest.raises(UserError, match=f"{given}; expected .*{expected}"):
        class_weights.of_labels((given,), labels, GOLD)
