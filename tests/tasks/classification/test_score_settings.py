import pytest

from bert.common.errors import UserError
from bert.data.labels import CLASSES, MULTI_LABEL, REGRESSION, Labels
from bert.tasks.classification.settings import Scoring

NAMES = ("a", "b", "c")
TWO, THREE = Labels(CLASSES, NAMES[:2]), Labels(CLASSES, NAMES)
SEVERAL, NUMBER = Labels(MULTI_LABEL, NAMES), Labels(REGRESSION)


@pytest.mark.parametrize(
    ("labels", "flags", "found"),
    [
        (TWO, {"metric_for_best_model": "f1", "tune_thresholds": True}, None),
        (
            SEVERAL,
            {"metric_for_best_model": "macro_f1", "tune_thresholds": True},
            None,
        ),
        (NUMBER, {"metric_for_best_model": "mae"}, None),
        (
            THREE,
            {"metric_for_best_model": "f1"},
            "=f1; expected one of accuracy, macro",
        ),
        (
            NUMBER,
            {"metric_for_best_model": "accuracy"},
            "expected one of pearson, spea",
        ),
        (NUMBER, {"class_weights": ("balanced",)}, "--class_weights with re"),
        (NUMBER, {"label_smoothing": 0.1}, "--label_smoothing with regressio"),
        (NUMBER, {"calibrate": True}, "--calibrate with regression; expected"),
        (NUMBER, {"unknown_below": 0.1}, "--unknown_below with regression"),
        (THREE, {"tune_thresholds": True}, "with 3 labels; expected two, or"),
        (SEVERAL, {"unknown_below": 0.7}, "=0.7 with --multi_label; expect"),
        (TWO, {"positive_label": "c"}, "--positive_label=c; expected one of"),
    ],
)
def test_flags_fit_the_labels(labels, flags, found):
    if found is None:
        Scoring(**flags).check_labels(labels)
        return
    with pytest.raises(UserError) as caught:
        Scoring(**flags).check_labels(labels)
    assert found in str(caught.value)
