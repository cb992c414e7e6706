"""run_squad end to end on questions that can be learned."""

import gzip
import json
import shutil

import pytest

import run_squad
from tests.helpers import run_folders, trained

pytestmark = pytest.mark.slow
COUNT = 31  # of questions


@pytest.fixture
def made(tmp_path_factory):
    """A run that trains, predicts, evaluates and tunes."""
    return trained.folder(tmp_path_factory, "cities").run


@pytest.fixture
def run(made, tmp_path):
    """A copy of it."""
    return shutil.copytree(made, tmp_path / "run")


@pytest.fixture
def later(made, run, run_script):
    """Runs a later command on the copy; returns its errors."""

    def later(**named):
        changed = {"do_train": None, "do_eval": None, "output_dir": run}
        changed |= {"tune_null_threshold": None, **named}
        flags = trained.flags_of(made.parent, "cities", **changed)
        code, _, err = run_script(run_squad, **flags)
        assert code == 0, err
        return err

    return later


def read(path):
    return json.loads(path.read_text())


def nbest_of(output):
    return read(output / "nbest_predictions.json").values()


def test_learns_answers_and_no_answer(made):
    results = run_folders.results(made)
    assert results["total"] == COUNT
    assert results["f1"] > 60 and results["HasAns_f1"] > 60
    assert results["f1"] == pytest.approx(results["best_f1"])
    report = read(made / "eval_report.json")
    assert report["task"] == "squad"
    predicted = read(made / "predictions.json")
    for error in report["worst_errors"]:
        assert error["predicted"] == predicted[error["id"]]
        assert error["predicted"] not in ("", error["label"])
        assert error["predicted"] in error["text"][1]


def test_writes_the_originals_files(made):
    keys = [f"q{i}" for i in range(COUNT)]
    files = []
    for name in ("predictions", "nbest_predictions", "null_odds"):
        text = (made / f"{name}.json").read_text()
        files.append(json.loads(text))
        assert text == json.dumps(files[-1], indent=4) + "\n"
        assert list(files[-1]) == keys
    predictions, nbest, odds = files
    recorded = read(made / "task.json")
    threshold = recorded["null_score_diff_threshold"]
    assert threshold != 0 and recorded.pop("tuned_step") > 0
    flags = trained.TASKS["cities"][1]
    names = "max_seq_length", "doc_stride", "max_query_length", "n_best_size"
    names += "max_answer_length", "version_2_with_negative"
    assert recorded == {
        "kind": "spans",
        "labels": [],
        **{name: flags[name] for name in names},
        "null_score_diff_threshold": threshold,
        "answer_text": "offsets",
    }
    for key in keys:
        entries = nbest[key]
        shown = ["text", "probability", "start_logit", "end_logit"]
        assert list(entries[0]) == shown
        assert sum(x["probability"] for x in entries) == pytest.approx(1)
        assert sum(not x["text"] for x in entries) == 1
        texts = [x["text"] for x in entries if x["text"]]
        expected = "" if odds[key] > threshold else texts[0]
        assert predictions[key] == expected
    assert len(set(predictions.values())) > 3


@pytest.mark.usefixtures("eagerly")
def test_given_flags_replace_those_of_the_training(made, run, later, tmp_path):
    texts = [[y["text"] for y in x] for x in nbest_of(run)]
    # Both kinds of answer texts are equal here.
    later(answer_text="original", null_score_diff_threshold=-99)
    assert set(read(run / "predictions.json").values()) == {""}
    assert [[y["text"] for y in x] for x in nbest_of(run)] == texts

    # Of version 1, every question has an answer, but one without a context.
    dev = read(made.parent / "dev.json")
    dev["data"][0]["paragraphs"][1]["context"] = " \n"
    path = tmp_path / "dev.json.gz"
    path.write_bytes(gzip.compress(json.dumps(dev).encode()))
    (run / "null_odds.json").unlink()
    error = later(predict_file=path, version_2_with_negative=False)
    assert "1 questions have no valid answer span" in error
    predictions = read(run / "predictions.json")
    assert [x for x in predictions if not predictions[x]] == ["q1"]
    assert not (run / "null_odds.json").exists()
