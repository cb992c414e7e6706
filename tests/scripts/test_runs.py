"""Several runs of run_classifier: folds and a grid."""

import json
import re

import numpy as np
import pytest

import run_classifier
from bert.export import folder as export_folder
from bert.modeling.formats import checkpoint_files
from bert.models.text_classifier import TextClassifier
from bert.runs import finetuning
from tests.helpers import classifier_files, run_folders
from tests.helpers.classifier_files import rows_of
from tests.helpers.pretraining_files import assert_same_bits

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("eagerly")]
ROWS, AUTHORS = 47, 13


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """Flags of a model and a table."""
    folder = tmp_path_factory.mktemp("runs")
    classifier_files.write_model(folder)
    return classifier_files.write_table(folder, ROWS)


@pytest.fixture
def classify(named, run_script):
    """Runs the script; returns what it printed."""

    def run(folder, **changed):
        words = ("--do_train", "--do_eval", "--do_predict")
        flags = {**named, "output_dir": folder, **changed}
        code, out, err = run_script(run_classifier, *words, **flags)
        assert code == 0, err
        return out + err

    return run


def test_folds_have_scores_and_predictions_of_their_own(
    classify, tmp_path, monkeypatch
):
    monkeypatch.setattr(export_folder, "write_model", lambda *_: None)
    train, results = finetuning.train_and_evaluate, []
    monkeypatch.setattr(
        finetuning,
        "train_and_evaluate",
        lambda *x: results.append(train(*x)) or results[-1],
    )
    run, export = tmp_path / "run", tmp_path / "export"
    flags = {"num_folds": 2, "group_column": "author", "export_dir": export}
    log = classify(run, **flags, train_batch_size=17)
    names = ["fold_1", "fold_2"]
    scores = [run_folders.results(run / name) for name in names]
    ranks = [(x["eval_accuracy"], -x["eval_loss"]) for x in scores]
    assert [x.rank for x in results] == [*ranks, ()]
    found = run_folders.results(run)
    for name in ("eval_accuracy", "eval_loss"):
        values = [x[name] for x in scores]
        assert found[name] == pytest.approx(np.mean(values))
        assert found[f"{name}_std"] == pytest.approx(np.std(values, ddof=1))
    mean = f"{found['eval_accuracy']:.4f} ± {found['eval_accuracy_std']:.4f}"
    assert f"mean ± deviation  {mean}" in log
    rows = [row[0] for row in rows_of(run / "runs.tsv")]
    assert rows == ["run", *names, "mean", "deviation"]

    # Each row is answered by the run that has not seen its author.
    table = rows_of(run / "out_of_fold.tsv")[1:]
    assert [row[0] for row in table] == [f"q{i}" for i in range(ROWS)]
    texts, chances = [row[-2] for row in table], [row[4:6] for row in table]
    is_of = []
    for name in names:
        answers = TextClassifier(str(run / name)).predict(texts, verbose=0)
        errors = np.abs(answers["probabilities"] - np.array(chances, "f4"))
        is_near = errors.max(-1) < 1e-4
        is_of.append([is_near[i::AUTHORS].all() for i in range(AUTHORS)])
    assert np.sum(is_of, 0).tolist() == [1] * AUTHORS
    sizes = [sum(x[i % AUTHORS] for i in range(ROWS)) for x in is_of]
    accuracies = [x["eval_accuracy"] for x in scores]
    right = np.mean([row[1] == row[3] for row in table])
    assert right == pytest.approx(np.average(accuracies, weights=sizes))

    # The last run has all rows; what it answers is exported, with the means.
    text = (export / "assets.extra/metrics.json").read_text()
    for name in ("eval_accuracy", "eval_loss_std"):
        assert json.loads(text)[name] == pytest.approx(found[name])
    card = (export / "README.md").read_text()
    assert "Measured on `mails.csv, means of 2 folds`:" in card
    assert f"| `accuracy` | {found['eval_accuracy']:.4f}".rstrip("0") in card
    settings = checkpoint_files.recorded_settings(str(run / "all_rows"))
    assert settings["records"].startswith(f"{ROWS} examples of ")
    answers = TextClassifier(str(run / "all_rows")).predict(
        ["the cat", "a dog"], verbose=0
    )
    found = [row[1] for row in rows_of(run / "predictions.tsv")[1:]]
    assert found == answers["label"]


def test_the_best_of_a_grid_is_the_run_alone(classify, tmp_path, monkeypatch):
    exported = []
    monkeypatch.setattr(
        export_folder,
        "write_model",
        lambda path, model, *_: exported.append(model.values),
    )
    run, alone = tmp_path / "run", tmp_path / "alone"
    flags = {
        "eval_fraction": 0.3,
        "eval_steps": 5,
        "metric_for_best_model": "loss",
    }
    flags |= {"train_batch_size": 11}
    log = classify(
        run,
        **flags,
        learning_rate="0.005,0.0005",
        export_dir=tmp_path / "export",
    )
    table = rows_of(run / "runs.tsv")
    column = table[0].index("eval_loss")
    losses = [float(row[column]) for row in table[1:]]
    assert losses[1] < losses[0]
    best = run / "learning_rate_0.0005"
    assert f"predictions and export use {best}\n" in log

    classify(
        alone, **flags, learning_rate=0.0005, export_dir=tmp_path / "single"
    )
    assert_same_bits(*exported)
    scores = [
        (tmp_path / x / export_folder.METRICS).read_text()
        for x in ("export", "single")
    ]
    assert scores[0] == scores[1]
    for export in ("export", "single"):
        card = (tmp_path / export / "README.md").read_text()
        assert re.search(r"Measured on `mails.csv, 1\d of its rows`:", card)
    for one, other, files in (
        (run, alone, "eval_results.txt"),
        (run, alone, "predictions.tsv"),
        (best / "best", alone / "best", "*.data*"),
    ):
        digests = [run_folders.digests(x, files) for x in (one, other)]
        assert digests[0] == digests[1] != {}
    both = [np.loadtxt(x / "test_results.tsv") for x in (run, alone)]
    np.testing.assert_allclose(*both, atol=1e-6)
