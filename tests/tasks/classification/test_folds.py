"""Folds of a table, beside those of scikit-learn."""

import dataclasses

import numpy as np
import pytest
from sklearn import model_selection

from bert.common.errors import UserError
from bert.data.label_kinds import CLASSES, REGRESSION, Labels
from bert.tasks.classification import division, folds
from bert.tasks.classification.examples import TextExample
from bert.tasks.classification.inputs import DEV, TRAIN, Data, Part
from bert.tasks.classification.settings import Settings

N, K, SEED = 61, 5, 17
CLASS = [int(i % 7 == 0) for i in range(N)]
TEXTS = [f"text {i}" for i in range(N)]
ALONE, GROUPS = [""] * N, [str(i * i % 19) for i in range(N)]
NAMES = [f"{'ca' if i % 2 else 'Ac'}{i * i % 19}" for i in range(N)]
COPIES = [f"text {i % 23}" for i in range(N)]


def part_of(labels=CLASS, texts=TEXTS, groups=ALONE):
    columns = enumerate(zip(texts, labels, groups))
    rows = [
        TextExample(f"q{i}", text, "", label, i + 2, group)
        for i, (text, label, group) in columns
    ]
    return Part(TRAIN, "mails.csv", rows)


@pytest.mark.parametrize("by_label", [True, False])
@pytest.mark.parametrize("seed", [SEED, -2])
@pytest.mark.parametrize(
    "column",
    [ALONE, GROUPS, NAMES, COPIES],
    ids=["alone", "groups", "names", "copies"],
)
def test_folds_are_those_of_scikit_learn(by_label, column, seed):
    name = "Stratified" * by_label + "Group" * (column != ALONE) + "KFold"
    splitter = getattr(model_selection, name)(
        K, shuffle=True, random_state=seed % 2**32
    )
    groups = column
    if column in (GROUPS, COPIES):  # numbers, as pandas reads them
        groups = [int(value.split()[-1]) for value in column]
    expected = [rows for _, rows in splitter.split(CLASS, CLASS, groups)]
    named = {"texts": COPIES} if column is COPIES else {"groups": column}
    found = folds.held_out(part_of(**named), K, seed, by_label)
    assert [np.flatnonzero(x).tolist() for x in found] == [
        rows.tolist() for rows in expected
    ]


@pytest.mark.parametrize(
    ("labels", "weights"),
    [
        (Labels(CLASSES, ("no", "yes")), ("balanced",)),
        (Labels(REGRESSION, ()), None),
    ],
)
def test_each_row_is_held_out_once_and_trains_in_the_other_folds(
    labels, weights
):
    settings = dataclasses.replace(
        Settings(),
        num_folds=K,
        class_weights=weights,
        group_column="author",
        random_seed=SEED,
    )
    whole = part_of(groups=GROUPS)
    data = Data(labels, ("accuracy",), (whole,), False)
    each = [*folds.of_data(settings, data)]
    drawn = folds.held_out(whole, K, SEED, labels.kind == CLASSES)
    for chosen, one in zip(drawn, each, strict=True):
        lines = [row.line - 2 for row in one.of(DEV)[0].examples]
        assert lines == np.flatnonzero(chosen).tolist()
    seen = [row for one in each for row in one.of(DEV)[0].examples]
    assert sorted(seen, key=lambda row: row.line) == whole.examples
    for one in each:
        (train,), (held_out,) = one.of(TRAIN), one.of(DEV)
        sides = [{x.group for x in part.examples} for part in one.parts]
        assert not sides[0] & sides[1]
        rows = train.examples + held_out.examples
        assert sorted(rows, key=lambda row: row.line) == whole.examples
        if weights:
            counts = np.bincount(train.labels)
            np.testing.assert_allclose(
                one.class_weights * counts, len(train.labels) / 2
            )
    names = [f"fold {i} of {K}, {SEED}, sorted author" for i in range(1, K + 1)]
    assert [one.of(TRAIN)[0].rows for one in each] == names


@pytest.mark.parametrize(
    ("part", "kind", "message"),
    [
        (
            part_of(texts=["a", "b", "c", "d"] * 15 + ["a"]),
            REGRESSION,
            "--num_folds=5 with 4 different texts or groups; expected at le",
        ),
        (part_of(labels=range(N)), CLASSES, "--num_folds=5: n_splits=5 cannot"),
    ],
)
def test_too_few_examples_are_one_line(part, kind, message):
    with pytest.raises(UserError) as caught:
        folds.held_out(part, K, SEED, kind == CLASSES)
    assert str(caught.value).startswith(f"mails.csv: {message}")


def test_rows_belong_together_through_texts_and_groups():
    rows = ["a..", "b.g", "a.g", "b..", "az.", "c.h", "c.."]
    examples = [
        TextExample("", a, b.strip("."), 0, 0, group.strip("."))
        for a, b, group in rows
    ]
    assert division.together(examples) == [0, 0, 0, 0, 4, 5, 5]


def test_as_many_texts_as_folds_are_enough():
    found = folds.held_out(part_of(texts=[*"abcde"] * 13), K, SEED, False)
    assert np.sum(found, 0).tolist() == [1] * N


def test_a_label_with_fewer_rows_than_folds_is_told(capsys):
    found = folds.held_out(part_of([1, 1, 1] + [0] * (N - 3)), K, SEED, True)
    assert np.sum(found, 0).tolist() == [1] * N
    assert capsys.readouterr().err.startswith("warning: mails.csv: The least")
