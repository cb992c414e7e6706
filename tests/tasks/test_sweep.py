"""Several runs whose training is replaced: the result of each is given."""

import json
import pathlib
import types

import pytest

from bert.common import command_line
from bert.runs import sweep
from bert.runs.sweep import HeldOut, RunSummary
from bert.tasks.classification.files import TextExample
from bert.tasks.similarity.settings import Settings
from bert.tasks.task import Evaluation
from tests.helpers import model_files, run_folders
from tests.helpers.classifier_files import rows_of

GRID = {"learning_rate": "1,0.5", "train_batch_size": "8,32"}
GRID_NAMES = [
    f"train_batch_size_{size}_learning_rate_{rate}"
    for size in (8, 32)
    for rate in ("1.0", "0.5")
]


def scores_of(accuracy, loss):
    return {"eval_accuracy": accuracy, "eval_loss": loss}


@pytest.fixture
def run(tmp_path):
    """Runs a sweep with the scores of each run; returns the settings."""
    model_files.write_sizes(tmp_path)

    def call(scores, held_out=None, **changed):
        trained = []

        def train(settings):
            folder = pathlib.Path(settings.output_dir)
            folder.mkdir(parents=True, exist_ok=True)
            model_files.write_sizes(folder)
            assert not settings.is_several
            trained.append(settings)
            predictions = []
            if settings.do_predict:
                paths = folder / "predictions.tsv", tmp_path / "elsewhere.tsv"
                for path in paths:
                    path.write_text(folder.name)
                predictions = [*map(str, paths)]
            if not settings.do_eval:
                return RunSummary(99, {}, {}, (), predictions)
            metrics = scores[folder.name]
            reference = {"eval_accuracy/chance": metrics["eval_accuracy"] / 2}
            report = {"task": "x", "records": "a.csv", "references": reference}
            rank = metrics["eval_accuracy"], -metrics["eval_loss"]
            step = len(trained) + 6
            rows = (held_out or {}).get(folder.name)
            return RunSummary(step, metrics, report, rank, predictions, rows)

        named = {
            "bert_config_file": tmp_path / "bert_config.json",
            "vocab_file": tmp_path / "vocab.txt",
            "max_seq_length": 13,
            "train_file": "a.csv",
            "output_dir": tmp_path / "run",
        }
        if "num_folds" not in changed:
            named["eval_file"] = "b.csv"
        if "do_predict" in changed:
            named["predict_file"] = "c.csv"
        words = [f"--{k}={x}" for k, x in {**named, **changed}.items()]
        words += ["--do_train", "--do_eval"]
        settings = command_line.parse(["run_similarity", *words], Settings, "")
        assert settings.is_several
        sweep.run(settings, train)
        return tmp_path / "run", trained

    return call


def test_the_best_of_a_grid_is_marked_and_predicts(run, capsys):
    values = [(0.5, 0.1), (0.75, 0.4), (0.75, 0.3), (0.25, 0.1)]
    scores = {n: scores_of(*x) for n, x in zip(GRID_NAMES, values)}
    folder, trained = run(scores, **GRID, do_predict=True)
    names = [pathlib.Path(x.output_dir).name for x in trained]
    # Large batches first: there may be too few examples for them.
    assert names == [*GRID_NAMES[2:], *GRID_NAMES[:2], GRID_NAMES[2]]
    rates = [(x.train_batch_size, x.learning_rate) for x in trained]
    assert rates == [(32, 1.0), (32, 0.5), (8, 1.0), (8, 0.5), (32, 1.0)]
    assert [x.do_predict for x in trained] == [False] * 4 + [True]
    assert not any(x.scores for x in trained)
    assert {x.sweep_dir for x in trained} == {str(folder)}

    found = run_folders.results(folder)  # the loss breaks the tie
    assert found == {"global_step": 7, **scores[GRID_NAMES[2]]}
    table = rows_of(folder / "runs.tsv")
    assert table[0] == ["run", "eval_accuracy", "eval_loss", "chosen"]
    assert [row[0] for row in table[1:]] == GRID_NAMES
    assert [row[-1] for row in table[1:]] == ["no", "no", "yes", "no"]
    report = json.loads((folder / "eval_report.json").read_text())
    assert report["run"] == GRID_NAMES[2] and report["step"] == 7
    assert report["metrics"] == scores[GRID_NAMES[2]]
    assert (folder / "predictions.tsv").read_text() == GRID_NAMES[2]
    assert not (folder / "elsewhere.tsv").exists()
    assert "eval_accuracy = 0.750000 (chance 0.375" in capsys.readouterr().out


def test_an_export_alone_needs_one_more_run(run, tmp_path):
    scores = {f"seed_{i}": scores_of(0.5, i / 10) for i in (5, 6)}
    flags = {"num_seeds": 2, "random_seed": 5}
    _, trained = run(scores, **flags, export_dir=tmp_path / "export")
    assert [bool(x.export_dir) for x in trained] == [False, False, True]
    assert trained[-1].random_seed == 5 and not trained[-1].do_predict


def test_seeds_have_means_and_deviations(run, capsys):
    scores = {
        "seed_5": scores_of(0.5, 0.1) | {"loss": 7.0, "eval_x": 1.0},
        "seed_6": scores_of(0.5, 0.3) | {"loss": 8.0},
        "seed_7": scores_of(0.25, 0.1) | {"loss": 9.0, "eval_x": 0.0},
    }
    folder, trained = run(scores, num_seeds=3, random_seed=5)
    assert [x.random_seed for x in trained] == [5, 6, 7]
    # All are evaluated on the same rows of the training file.
    assert {x.described["split_seed"] for x in trained} == {5}

    # A score that one run lacks has no mean.
    table = rows_of(folder / "runs.tsv")
    assert table[0] == ["run", "eval_accuracy", "eval_loss", "chosen"]
    assert [row[-1] for row in table] == ["chosen", "yes", "no", "no", "", ""]
    assert [row[0] for row in table[-2:]] == ["mean", "deviation"]
    found = run_folders.results(folder)
    for row, end in zip(table[-2:], ("", "_std"), strict=True):
        assert float(row[1]) == found[f"eval_accuracy{end}"]
    assert found["eval_accuracy"] == pytest.approx(1.25 / 3)
    assert found["eval_accuracy_std"] == pytest.approx(0.25 / 3**0.5)
    assert found["global_step"] == 7 and found["loss"] == 8.0
    assert "loss_std" not in found
    assert "mean ± deviation  0.4167 ± 0.1443" in capsys.readouterr().out


def test_the_best_mean_of_a_grid_with_seeds_is_chosen(run, capsys):
    """The best run of all has a value whose other seed is worse."""
    values = [(0.9, 0.1), (0.1, 0.1), (0.6, 0.2), (0.8, 0.3)]
    names = [
        f"learning_rate_{rate}_seed_{seed}"
        for rate in ("1.0", "0.5")
        for seed in (5, 6)
    ]
    scores = {name: scores_of(*x) for name, x in zip(names, values)}
    grid = {"learning_rate": "1,0.5", "num_seeds": 2, "random_seed": 5}
    folder, trained = run(scores, **grid, do_predict=True)
    chosen = [(x.learning_rate, x.random_seed) for x in trained]
    assert chosen == [(1.0, 5), (1.0, 6), (0.5, 5), (0.5, 6), (0.5, 6)]

    table = rows_of(folder / "runs.tsv")
    assert [row[0] for row in table[1:]] == [
        *names,
        "learning_rate_1.0 mean",
        "learning_rate_1.0 deviation",
        "learning_rate_0.5 mean",
        "learning_rate_0.5 deviation",
    ]
    assert [row[-1] for row in table[1:]] == [
        "no",
        "no",
        "no",
        "yes",
        *[""] * 4,
    ]
    means = [float(row[1]) for row in table[5:]]
    assert means == pytest.approx([0.5, 0.8 / 2**0.5, 0.7, 0.2 / 2**0.5])
    found = run_folders.results(folder)
    assert [found["eval_accuracy"], found["eval_accuracy_std"]] == means[2:]
    assert found["eval_loss"] == pytest.approx(0.25)
    assert (folder / "predictions.tsv").read_text() == names[3]
    out = capsys.readouterr().out
    assert "learning_rate_1.0 mean ± deviation  0.5000 ± 0.5657" in out


def test_folds_are_followed_by_a_run_on_all_rows(run):
    """The held-out rows of all folds are reported as one file."""

    def write_out_of_fold(folder, rows, encoded, results, folds):
        columns = {"rows": rows, "results": results, "folds": folds}
        path = pathlib.Path(folder) / "joined.json"
        path.write_text(json.dumps(columns))
        return [str(path)]

    task = types.SimpleNamespace(
        write_out_of_fold=write_out_of_fold,
        score=lambda *x: Evaluation({}, {"labels": ["n"]}, [], []),
    )
    values = [(0.5, 0.1), (0.75, 0.3), (0.25, 0.1)]
    scores = {f"fold_{i}": scores_of(*x) for i, x in enumerate(values, 1)}
    held_out = {
        "fold_1": [TextExample(line=3)],
        "fold_2": [TextExample(line=4), TextExample(line=1)],
        "fold_3": [TextExample(line=2)],
    }
    held_out = {
        name: HeldOut(task, rows, [None] * len(rows), [x.line for x in rows])
        for name, rows in held_out.items()
    }
    flags = {"num_folds": 3, "do_predict": True, "export_dir": "exported"}
    folder, trained = run(scores, held_out, **flags)
    assert [x.fold for x in trained] == [1, 2, 3, 0]
    assert [x.num_folds for x in trained] == [3, 3, 3, 0]
    assert [x.do_eval for x in trained] == [True, True, True, False]
    assert [bool(x.export_dir) for x in trained] == [False] * 3 + [True]
    assert len({x.division for x in trained}) == 4
    assert trained[3].division == ""
    joined = json.loads((folder / "joined.json").read_text())
    assert [x[4] for x in joined["rows"]] == joined["results"] == [1, 2, 3, 4]
    numbers = [int(x.removeprefix("fold_")) for x in joined["folds"]]
    assert numbers == [2, 3, 1, 2]
    report = json.loads((folder / "eval_report.json").read_text())
    assert report["references"] == {"eval_accuracy/chance": 0.25}
    assert report["labels"] == ["n"] and report["records"] == "a.csv"
    assert "chosen" not in (folder / "runs.tsv").read_text()
    assert (folder / "predictions.tsv").read_text() == "all_rows"
    assert [x.scores for x in trained[:3]] == [None] * 3
    assert trained[3].scores.source == "a.csv, means of 3 folds"
    assert trained[3].scores.metrics == report["metrics"]
