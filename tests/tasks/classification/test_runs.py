"""Several runs whose training is replaced: the scores of each are given."""

import json
import os
import types

import numpy as np
import pytest

from bert.common import flags, storage
from bert.tasks import finetuning, starting_model
from bert.tasks.classification import inputs, runs
from bert.tasks.classification.settings import Settings
from bert.tasks.run_folder import RunFolder
from tests.helpers import classifier_files, run_folders
from tests.helpers.classifier_files import rows_of

ROWS = 23
GRID = {"learning_rate": "1,0.5,0.25", "eval_share": 0.3}


@pytest.fixture
def work(tmp_path, monkeypatch):
    """Calls `runs.work` with the scores of each run; returns its folder."""
    classifier_files.write_model(tmp_path)
    named = classifier_files.write_table(tmp_path, ROWS)
    opened = []
    open_file = storage.open_file
    monkeypatch.setattr(
        storage,
        "open_file",
        lambda *x: opened.append(x[0]) or open_file(*x),
    )

    def call(scores, **changed):
        built, number = [], iter(range(99))

        # A run has the logits of its own number for all its examples.
        def work_alone(settings, model, folder, task, metrics=None):
            built.append(task.build())
            if metrics:  # predicts
                return None, metrics
            folder.write_inputs()
            index = next(number)
            run = types.SimpleNamespace(
                folder=folder.path, weights_step=index + 7
            )
            run.outputs = lambda rows, *_: [
                {"logits": np.array([0.0, index - 0.5], "f4")} for _ in rows
            ]
            task.evaluate(run)
            return run, scores[index]

        monkeypatch.setattr(finetuning, "work", work_alone)
        words = [f"--{k}={x}" for k, x in {**named, **changed}.items()]
        words += ["--do_train", "--do_eval", "--do_predict"]
        words += [f"--output_dir={tmp_path}/run"]
        settings = flags.parse(["run_classifier", *words], Settings, "")
        data = inputs.read(settings)
        model = starting_model.find(settings)
        folder = RunFolder(
            f"{tmp_path}/run", f"{tmp_path}/run", model.config, model.tokenizer
        )
        runs.work(settings, model, folder, data)
        return tmp_path / "run", built, opened

    return call


def of(accuracy, loss, **more):
    return {"eval_accuracy": accuracy, "eval_loss": loss, **more}


def test_the_best_of_a_grid_is_marked_and_reported(work, capsys):
    scores = [of(0.5, 0.1), of(0.75, 0.4), of(0.75, 0.3)]
    folder, _, opened = work(scores, **GRID)
    found = run_folders.results(folder)
    assert found == {"global_step": 9, **scores[2]}  # the loss breaks the tie
    table = rows_of(folder / "runs.tsv")
    assert table[0] == ["run", "eval_accuracy", "eval_loss", "chosen"]
    assert [row[-1] for row in table[1:]] == ["no", "no", "yes"]
    report = json.loads((folder / "eval_report.json").read_text())
    assert report["run"] == "learning_rate_0.25"
    assert report["metrics"] == scores[2] and report["step"] == 9
    assert report["per_class"]["n"]["recall"] == 0.0  # its third run says y
    assert len(report["worst_errors"]) > 0
    references = report["references"]
    shown = f"(majority {references['eval_accuracy/majority']:.6f}"
    assert f"eval_accuracy = 0.750000 {shown}" in capsys.readouterr().out
    read = [os.path.basename(x) for x in opened if x.endswith(".csv")]
    assert read == ["mails.csv", "new.csv"]  # not once for each run


def test_each_seed_has_a_head_of_its_own(work):
    scores = [of(0.5, 0.1, eval_x=1.0), of(0.5, 0.3), of(0.25, 0.1, eval_x=0.0)]
    folder, built, _ = work(scores, num_seeds=3, eval_share=0.3)
    heads = [head_of(model) for model in built]
    assert len({x.tobytes() for x in heads[:3]}) == 3
    assert (heads[3] == heads[0]).all()  # the best, again

    # A score that one run lacks has no mean.
    assert "eval_x" not in (folder / "runs.tsv").read_text()
    found = run_folders.results(folder)
    assert found["eval_accuracy"] == pytest.approx(1.25 / 3)
    assert found["global_step"] == 7
    chosen = [row[-1] for row in rows_of(folder / "runs.tsv")]
    assert chosen == ["chosen", "yes", "no", "no"]


def head_of(model):
    """The initial weights of the last layer."""
    (head,) = (x for x in model.weights if x.path.endswith("output_weights"))
    return np.array(head)


def test_folds_are_reported_as_one_file(work):
    scores = [of(0.5, 0.1), of(0.75, 0.3), of(0.25, 0.1)]
    folder, _, _ = work(scores, num_folds=3)
    table = rows_of(folder / "out_of_fold.tsv")
    columns = {
        name: [row[i] for row in table[1:]] for i, name in enumerate(table[0])
    }
    assert columns["id"] == [f"q{i}" for i in range(ROWS)]
    assert {*columns["fold"]} == {"fold_1", "fold_2", "fold_3"}
    by_fold = {"fold_1": "n", "fold_2": "y", "fold_3": "y"}
    assert columns["predicted"] == [by_fold[x] for x in columns["fold"]]

    report = json.loads((folder / "eval_report.json").read_text())
    pairs = [*zip(columns["label"], columns["predicted"])]
    assert report["confusion_matrix"] == [
        [pairs.count((gold, found)) for found in "ny"] for gold in "ny"
    ]
    assert report["metrics"]["eval_accuracy"] == 0.5
    assert report["records"].endswith("mails.csv")
    assert "eval_accuracy/tfidf" in report["references"]
    assert {x["predicted"] for x in report["worst_errors"]} == {"n", "y"}
    doubtful = rows_of(folder / runs.DOUBTFUL)
    assert sorted(row[1] for row in doubtful[1:]) == sorted(columns["id"])
    assert doubtful[1][2] != doubtful[1][4]
    assert "chosen" not in (folder / "runs.tsv").read_text()


@pytest.mark.parametrize(
    ("metric", "chosen"), [("mae", "2"), ("pearson", "1"), ("loss", "3")]
)
def test_the_best_of_numbers_has_the_lowest_error(work, metric, chosen):
    scores = [
        of(0.0, loss, eval_mae=mae, eval_pearson=pearson)
        for mae, pearson, loss in [
            (3.0, 0.5, 2.0),
            (1.0, 0.25, 3.0),
            (2.0, 0.0, 1.0),
        ]
    ]
    named = {"label_column": "author", "regression": True, "eval_share": 0.3}
    folder, _, _ = work(
        scores, **named, num_seeds=3, random_seed=1, best_metric=metric
    )
    marked = [
        row[0] for row in rows_of(folder / "runs.tsv") if row[-1] == "yes"
    ]
    assert marked == [f"seed_{chosen}"]
