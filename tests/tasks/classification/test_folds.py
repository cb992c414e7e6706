"""Folds of a table, beside those of scikit-learn."""

import dataclasses
import os

import numpy as np
import pytest
from sklearn import model_selection

from bert.common.errors import UserError
from bert.data.labels import CLASSES, REGRESSION, Labels
from bert.runs import sweep
from bert.tasks.classification import examples, inputs, prediction_files
from bert.tasks.classification.files import TextExample, labels_of
from bert.tasks.classification.settings import Settings
from bert.tasks.task import DEV, TRAIN
from tests.helpers import classifier_files, run_folders
from tests.helpers.classifier_files import rows_of

N, K, SEED = 61, 5, 17
CLASS = [int(i % 7 == 0) for i in range(N)]
TEXTS = [f"text {i}" for i in range(N)]
ALONE, GROUPS = [""] * N, [str(i * i % 19) for i in range(N)]
NAMES = [f"{'ca' if i % 2 else 'Ac'}{i * i % 19}" for i in range(N)]
COPIES = [f"text {i % 23}" for i in range(N)]
# Two groups share a text; both have the name that comes first.
SHARED = [*TEXTS[:9], TEXTS[4], *TEXTS[10:]]
BOTH = {NAMES[4], NAMES[9]}
LINKED = [min(BOTH) if name in BOTH else name for name in NAMES]


def held_out(
    labels=CLASS, texts=TEXTS, groups=ALONE, seed=SEED, by_label=False
):
    """Numbers of the held-out rows of each fold."""
    rows = [
        TextExample(f"q{i}", text, "", label, i, group)
        for i, (text, label, group) in enumerate(zip(texts, labels, groups))
    ]
    kind = Labels(CLASSES if by_label else REGRESSION)
    found = []
    for fold in range(1, K + 1):
        settings = Settings(num_folds=K, fold=fold, random_seed=seed)
        kept = examples.hold_out(settings, "mails.csv", rows, kind, True)
        found.append([row.line for row in kept])
    return found


@pytest.mark.parametrize("by_label", [True, False])
@pytest.mark.parametrize("seed", [SEED, -2])
@pytest.mark.parametrize(
    "column",
    [ALONE, GROUPS, NAMES, COPIES, LINKED],
    ids=["alone", "groups", "names", "copies", "linked"],
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
    if column is LINKED:
        named = {"texts": SHARED, "groups": NAMES}
    found = held_out(**named, seed=seed, by_label=by_label)
    assert found == [rows.tolist() for rows in expected]


def test_labels_that_cannot_be_stratified_are_one_line():
    with pytest.raises(UserError, match="^mails.csv: --num_folds=5: n_splits"):
        held_out(labels=range(N), by_label=True)


def test_a_label_with_fewer_rows_than_folds_is_told(capsys):
    found = held_out([1, 1, 1] + [0] * (N - 3), by_label=True)
    assert sorted(sum(found, [])) == [*range(N)]
    assert capsys.readouterr().err.startswith("warning: mails.csv: The least")


@pytest.fixture
def settings(tmp_path):
    """Settings of three folds of a table with 13 authors."""
    classifier_files.write_model(tmp_path)
    named = classifier_files.write_table(tmp_path, N)
    named |= {"output_dir": tmp_path / "run", "num_folds": 3}
    del named["predict_file"]
    named["group_column"] = "author"
    return run_folders.parse(Settings, "--do_train", "--do_eval", **named)


def test_each_row_is_held_out_once_and_trains_in_the_other_folds(settings):
    settings = dataclasses.replace(settings, class_weights=("balanced",))
    alone = dataclasses.replace(settings, num_folds=0, do_eval=False)
    _, whole = inputs.read(run_folders.opened(alone))
    seen = []
    for trial in sweep.expand_trials(settings):
        task, files = inputs.read(run_folders.opened(trial.settings))
        (train,), (dev,) = files[TRAIN], files[DEV]
        groups = [{x.group for x in split.rows} for split in (train, dev)]
        assert not groups[0] & groups[1]
        rows = sorted(train.rows + dev.rows, key=lambda x: x.line)
        assert rows == whole[TRAIN][0].rows
        counts = np.bincount(labels_of(train.rows))
        np.testing.assert_allclose(
            task.class_weights * counts, len(train.rows) / 2
        )
        seen += dev.rows
    seen.sort(key=lambda x: x.line)
    assert seen == whole[TRAIN][0].rows
    assert trial.settings.division == "fold 3 of 3, 12345, sorted author"


def test_folds_are_reported_as_one_file(settings, tmp_path):
    """The first fold predicts n, and the others y."""
    trials, held_out = sweep.expand_trials(settings), []
    for i, trial in enumerate(trials):
        task, files = inputs.read(run_folders.opened(trial.settings))
        (file,) = files[DEV]
        results = [*np.tile([0.0, i - 0.5], (len(file.rows), 1)).astype("f4")]
        held_out.append(
            sweep.HeldOut(task, file.rows, [None] * len(file.rows), results)
        )
    names = [trial.name for trial in trials]
    paths, report = sweep.join(str(tmp_path), names, held_out)

    table = rows_of(tmp_path / "out_of_fold.tsv")
    columns = {
        name: [row[i] for row in table[1:]] for i, name in enumerate(table[0])
    }
    assert columns["id"] == [f"q{i}" for i in range(N)]
    assert {*columns["fold"]} == {"fold_1", "fold_2", "fold_3"}
    by_fold = {"fold_1": "n", "fold_2": "y", "fold_3": "y"}
    assert columns["predicted"] == [by_fold[x] for x in columns["fold"]]
    pairs = [*zip(columns["label"], columns["predicted"])]
    assert report["confusion_matrix"] == [
        [pairs.count((gold, found)) for found in "ny"] for gold in "ny"
    ]
    assert {x["predicted"] for x in report["worst_errors"]} == {"n", "y"}
    assert [os.path.basename(x) for x in paths] == [
        prediction_files.OUT_OF_FOLD
    ]
