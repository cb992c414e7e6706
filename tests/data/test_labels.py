"""Labels of a run, and of the weights that it reads."""

import re

import pytest

from bert.common.errors import UserError
from bert.data.labels import CLASSES, MULTI_LABEL, REGRESSION, Labels

TRAINED = Labels(CLASSES, ("ham", "spam"))


def check(labels, may_rename):
    labels.check_same(
        TRAINED, may_rename=may_rename, path="run", fix="pass another folder"
    )


@pytest.mark.parametrize("may_rename", [False, True])
@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        (Labels(CLASSES, ("spam", "ham")), "classes spam, ham"),
        (Labels(MULTI_LABEL, TRAINED.names), "multi_label ham, spam"),
        (Labels(REGRESSION), "regression"),
    ],
)
def test_another_order_or_kind_is_an_error(labels, shown, may_rename):
    message = (
        "run: trained with the labels: classes ham, spam; "
        f"expected {shown}; pass another folder"
    )
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        check(labels, may_rename)
    check(Labels(CLASSES, TRAINED.names, separator=";"), may_rename)


def test_classes_get_new_names_only_where_they_may():
    names = Labels(CLASSES, tuple("abcdef"))
    check(names, may_rename=True)
    with pytest.raises(UserError, match=r"classes a, b, c, d, e, ... \(6\); p"):
        check(names, may_rename=False)
