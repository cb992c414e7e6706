"""run_squad end to end on a small network."""

import contextlib
import gzip
import io
import itertools
import json
import pathlib
import shutil
import statistics

import pytest
import tensorflow as tf

import bert
import run_squad
from bert.common import main as main_lib
from bert.inference.predictor import Predictor
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks.squad import examples as squad
from tests.helpers import model_files, squad_files

QUESTIONS, DEV_QUESTIONS = 97, 31


def run(**named):
    """Exit code, standard output and error of the script."""
    argv = ["run_squad.py", *(f"--{k}={v}" for k, v in named.items())]
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        code = main_lib.run(run_squad.main, argv)
    return code, out.getvalue(), error.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("squad")


@pytest.fixture(scope="module")
def command(folder):
    """Flags of a small network, without --do_*."""
    model_files.write_sizes(
        folder,
        "config.json",
        squad_files.VOCABULARY,
        hidden_size=30,
        max_position_embeddings=43,
    )
    return {
        "bert_config_file": folder / "config.json",
        "vocab_file": folder / "vocab.txt",
        "train_file": squad_files.write(
            folder / "train.json", QUESTIONS, seed=1
        ),
        "predict_file": squad_files.write(
            folder / "dev.json", DEV_QUESTIONS, seed=2
        ),
        "output_dir": folder / "run",
        "max_seq_length": 23,
        "max_query_length": 7,
        "doc_stride": 5,
        "n_best_size": 5,
        "max_answer_length": 3,
        "train_batch_size": 13,
        "learning_rate": 3e-3,
        "num_train_epochs": 12,
        "version_2_with_negative": True,
        "log_steps": 29,
    }


@pytest.fixture(scope="module")
def trained(folder, command):
    """A run that trains, predicts, evaluates, tunes and exports."""
    export = folder / "export"
    code, out, error = run(
        **command,
        do_train=True,
        do_predict=True,
        do_eval=True,
        tune_null_threshold=True,
        export_dir=export,
    )
    assert code == 0, error
    return folder / "run", export, out, error


def read(path):
    return json.loads(pathlib.Path(path).read_text())


@pytest.mark.slow
def test_learns_answers_and_no_answer(trained):
    output, _, out, _ = trained
    results = dict(
        line.split(" = ")
        for line in (output / "eval_results.txt").read_text().splitlines()
    )
    for key, value in results.items():
        value = f"{float(value):.6f}" if "." in value else value
        assert f"\n{key} = {value}" in f"\n{out}"
    report = read(output / "eval_report.json")
    assert report["task"] == "squad"
    predicted = read(output / "predictions.json")
    for error in report["worst_errors"]:
        assert error["predicted"] == predicted[error["id"]]
        assert error["predicted"] not in ("", error["label"])
        assert error["predicted"] in error["text"][1]
    assert results["total"] == str(DEV_QUESTIONS)
    assert float(results["f1"]) > 60
    assert float(results["HasAns_f1"]) > 60
    assert float(results["f1"]) == pytest.approx(float(results["best_f1"]))


@pytest.mark.slow
def test_writes_the_originals_files(trained, command):
    output, export, *_ = trained
    keys = [f"q{i}" for i in range(DEV_QUESTIONS)]
    predictions = read(output / "predictions.json")
    nbest = read(output / "nbest_predictions.json")
    odds = read(output / "null_odds.json")
    for values in (predictions, nbest, odds):
        assert list(values) == keys
    for name in (
        "predictions.json",
        "nbest_predictions.json",
        "null_odds.json",
    ):
        text = (output / name).read_text()
        assert text == json.dumps(json.loads(text), indent=4) + "\n"
    threshold = read(export / "task.json")["null_score_diff_threshold"]
    assert threshold != 0
    names = "max_seq_length", "doc_stride", "max_query_length", "n_best_size"
    names += "max_answer_length", "version_2_with_negative"
    recorded = read(output / "task.json")
    assert recorded.pop("tuned_step") > 0
    assert recorded == {
        "kind": "spans",
        "labels": [],
        **{name: command[name] for name in names},
        "null_score_diff_threshold": threshold,
        "answer_text": "offsets",
    }
    for key in keys:
        entries = nbest[key]
        assert list(entries[0]) == [
            "text",
            "probability",
            "start_logit",
            "end_logit",
        ]
        assert sum(x["probability"] for x in entries) == pytest.approx(1)
        assert sum(not x["text"] for x in entries) == 1
        texts = [x["text"] for x in entries if x["text"]]
        expected = "" if odds[key] > threshold else texts[0]
        assert predictions[key] == expected
    assert len(set(predictions.values())) > 3


@pytest.mark.usefixtures("eagerly")
@pytest.mark.slow
def test_a_later_run_reuses_the_threshold(trained, command, tmp_path):
    output = shutil.copytree(trained[0], tmp_path / "run")
    command = {**command, "output_dir": output}
    predictions = read(output / "predictions.json")
    odds = read(output / "null_odds.json")
    texts = [[y["text"] for y in x] for x in nbest_of(output)]
    code, _, error = run(
        **command, do_predict=True, length_buckets=False, predict_batch_size=7
    )
    assert code == 0, error
    assert read(output / "predictions.json") == predictions
    assert read(output / "null_odds.json") == pytest.approx(odds, abs=1e-4)
    # --null_score_diff_threshold overrides the recorded one; both kinds of
    # answer texts are equal here.
    code, _, error = run(
        **command,
        do_predict=True,
        answer_text="original",
        null_score_diff_threshold=-99,
    )
    assert code == 0, error
    assert set(read(output / "predictions.json").values()) == {""}
    assert [[y["text"] for y in x] for x in nbest_of(output)] == texts


@pytest.mark.usefixtures("eagerly")
@pytest.mark.slow
def test_an_earlier_run_has_its_settings_and_threshold(
    trained, command, tmp_path
):
    """Earlier versions wrote no `task.json`."""
    output = shutil.copytree(trained[0], tmp_path / "run")
    task = read(output / "task.json")
    (output / "task.json").unlink()
    odds = read(output / "null_odds.json")
    # In the middle of the widest gap: a score on the threshold may be rounded.
    pairs = itertools.pairwise(sorted(odds.values()))
    threshold = statistics.fmean(max(pairs, key=lambda x: x[1] - x[0]))
    tuned = {"null_score_diff_threshold": threshold, "global_step": 1}
    path = output / "null_threshold.json"
    path.write_text(json.dumps(tuned | {"global_step": step_of(output)}))
    expected = [
        ""
        if odds[key] > threshold
        else next(x["text"] for x in nbest if x["text"])
        for key, nbest in zip(odds, nbest_of(output))
    ]
    assert expected != [*read(output / "predictions.json").values()]

    examples = squad.read(command["predict_file"], squad.NOTHING).rows
    x = [y.question for y in examples], [y.context for y in examples]
    model = bert.QuestionAnswerer(str(output))
    assert model.predict(x, verbose=0)["answer"] == expected
    predictor = Predictor.open(str(output), "keras")
    rows = [{"question": a, "context": b} for a, b in zip(*x)]
    assert [y["answer"] for y in predictor(rows)] == expected
    code, _, error = run(**command | {"output_dir": output}, do_predict=True)
    assert code == 0, error
    assert [*read(output / "predictions.json").values()] == expected

    path.write_text(json.dumps(tuned))  # of other weights
    task.pop("tuned_step", None)
    task["null_score_diff_threshold"] = 0.0
    assert ModelFolder.open(str(output)).task == task


@pytest.mark.long
def test_a_threshold_is_that_of_its_weights(trained, command, tmp_path):
    """Other weights of the run, which are trained further, have none."""
    output = shutil.copytree(trained[0], tmp_path / "run")
    command = {**command, "output_dir": output, "num_train_epochs": 13}
    code, _, error = run(**command, do_train=True)
    assert code == 0, error
    assert read(output / "task.json")["null_score_diff_threshold"] == 0.0


def step_of(output):
    return int(tf.train.latest_checkpoint(str(output)).rpartition("-")[2])


def nbest_of(output):
    return read(output / "nbest_predictions.json").values()


@pytest.mark.long
def test_version_1_keeps_the_best_of_training_and_empty_contexts(
    folder, command
):
    dev = json.loads(
        pathlib.Path(
            squad_files.write(folder / "x.json", 5, 3, version_2=False)
        ).read_text()
    )
    dev["data"][0]["paragraphs"][1]["context"] = " \n"
    path = folder / "dev1.json.gz"
    path.write_bytes(gzip.compress(json.dumps(dev).encode()))
    flags = command | {
        "train_file": squad_files.write(
            folder / "train1.json", 17, seed=4, version_2=False
        ),
        "predict_file": path,
        "output_dir": folder / "run1",
        "version_2_with_negative": False,
        "num_train_epochs": 2,
    }
    code, _, error = run(
        **flags, do_train=True, do_predict=True, do_eval=True, eval_steps=2
    )
    assert code == 0, error
    assert "using the best checkpoint" in error
    assert "1 questions have no valid answer span" in error
    predictions = read(folder / "run1" / "predictions.json")
    assert predictions["q1"] == "" and predictions["q0"]
    assert not (folder / "run1" / "null_odds.json").exists()
    results = (folder / "run1" / "eval_results.txt").read_text()
    assert "exact_match = " in results and "NoAns" not in results
