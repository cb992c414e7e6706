"""run_classifier end to end on a small network."""

import io
import json
import os
import shutil

import huggingface_hub
import numpy as np
import pytest
import tensorflow as tf

import convert_checkpoint
import run_classifier
from bert.common import main as main_lib
from bert.models.text_classifier import TextClassifier
from tests.helpers import classifier_files, run_folders, small
from tests.helpers.classifier_files import DEV, EPOCHS, TRAIN, rows_of

S = small.POSITIONS


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of a complete run."""
    folder = tmp_path_factory.mktemp("classifier")
    classifier_files.write_model(folder)
    classifier_files.write_task(folder)
    named = classifier_files.flags_of(folder)
    named |= {
        "output_dir": folder / "run",
        "export_dir": folder / "export",
        "glue_dir": folder / "glue",
        "eval_steps": 22,
    }
    words = ["--do_train", "--do_eval", "--do_predict"]
    argv = ["run", *words, *(f"--{k}={v}" for k, v in named.items())]
    assert main_lib.run(run_classifier.main, argv) == 0
    return folder


@pytest.fixture
def classify(made, run_script, tmp_path):
    """Runs the script into a folder of the test."""

    def run(*words, code=0, **named):
        named = {
            **classifier_files.flags_of(made),
            "output_dir": tmp_path / "run",
            **named,
        }
        named = {k: v for k, v in named.items() if v is not None}
        found, out, err = run_script(run_classifier, *words, **named)
        assert found == code, err
        return out, err

    return run


def test_a_run_learns_and_writes_the_originals_files(made):
    run = made / "run"
    result = run_folders.results(run)
    assert result.keys() == {
        "eval_accuracy",
        "eval_f1",
        "eval_loss",
        "global_step",
        "loss",
    }
    assert result["eval_accuracy"] > 0.9
    steps = int(TRAIN / 7 * EPOCHS)
    assert (run / f"model.ckpt-{steps}.index").is_file()
    assert json.loads((run / "task.json").read_text()) == {
        "kind": "classes",
        "labels": ["0", "1"],
        "max_seq_length": S,
        "pairs": True,
    }


def test_the_scores_of_the_best_weights_are_in_its_cards(
    made, run_script, tmp_path
):
    """Of the export, and of conversions: a run means its best weights."""
    for folder in ("best", "."):
        code, _, err = run_script(
            convert_checkpoint,
            to="huggingface",
            input=made / "run" / folder,
            output=tmp_path / folder / "cats",
            card_license="mit",
        )
        assert code == 0, err
    cards = [
        huggingface_hub.ModelCard.load(path / "README.md").data.to_dict()
        for path in (made / "export", tmp_path / "best/cats", tmp_path / "cats")
    ]
    export, best, last = [card.pop("model-index", None) for card in cards]
    common = {"pipeline_tag": "text-classification", "tags": ["bert"]}
    theirs = common | {"library_name": "transformers", "license": "mit"}
    assert cards == [common | {"library_name": "tensorflow"}, theirs, theirs]
    assert last == best and best[0]["name"] == "cats"
    assert best[0]["results"] == export[0]["results"]
    (result,) = export[0]["results"]
    assert result["dataset"] == {"type": "mrpc", "name": "dev.tsv"}
    found = {x["type"]: x["value"] for x in result["metrics"]}
    values = run_folders.results(made / "run")
    names = ("accuracy", "f1", "loss")
    assert found == {x: round(values[f"eval_{x}"], 4) for x in names}


def test_the_best_weights_are_used_and_their_step_is_logged(made):
    run = made / "run"
    (best,) = (run / "best").glob("model.ckpt-*.json")
    saved = json.loads(best.read_text())["settings"]["eval_accuracy"]
    result = run_folders.results(run)
    assert result["global_step"] == int(best.stem.rpartition("-")[2])
    assert result["eval_accuracy"] == saved
    logged = run_folders.points(run)
    scores = [x["eval_accuracy"] for x in logged if "eval_accuracy" in x]
    assert len(scores) == int(TRAIN / 7 * EPOCHS) // 22 + 1
    assert max(scores) == saved


def test_predictions_are_those_of_the_best_weights(made):
    run = made / "run"
    rows = [row[3:] for row in rows_of(made / "test.tsv")[1:]]
    model = TextClassifier(str(run / "best"), ["0", "1"])
    answers = model.predict(tuple(zip(*rows)), verbose=0)
    found = np.array(rows_of(run / "test_results.tsv"), np.float32)
    np.testing.assert_allclose(found, answers["probabilities"], atol=1e-5)
    table = rows_of(run / "predictions.tsv")[1:]
    assert [row[1] for row in table] == answers["label"]
    assert rows_of(made / "glue" / "MRPC.tsv") == [
        ["index", "prediction"],
        *([str(i), label] for i, label in enumerate(answers["label"])),
    ]


def test_the_report_has_references_classes_and_errors(made):
    report = json.loads((made / "run" / "eval_report.json").read_text())
    table = rows_of(made / "dev.tsv")[1:]
    labels = [row[0] for row in table]
    result = run_folders.results(made / "run")
    assert report["step"] == result.pop("global_step")
    assert (report["task"], report["metrics"]) == ("mrpc", result)
    assert report["records"] == f"{made}/dev.tsv"
    train = [row[0] for row in rows_of(made / "train.tsv")[1:]]
    majority = labels.count(max("01", key=train.count)) / DEV
    assert report["references"]["eval_accuracy/majority"] == majority
    assert report["references"]["eval_accuracy/tfidf"] == 1.0
    matrix = report["confusion_matrix"]
    assert [sum(row) for row in matrix] == [labels.count(x) for x in "01"]
    right = matrix[0][0] + matrix[1][1]
    assert result["eval_accuracy"] == right / DEV
    assert len(report["worst_errors"]) == DEV - right
    texts = [row[3:] for row in table]
    for error in report["worst_errors"]:
        row = texts.index(error["text"])
        assert labels[row] == error["label"] != error["predicted"]
        assert (error["id"], error["line"]) == (str(row), row + 2)


def test_a_finished_run_does_not_train_and_predicts_again(made, classify):
    run, path = made / "run", made / "run" / "test_results.tsv"
    before, names = path.read_bytes(), sorted(os.listdir(run))
    words = ("--do_train", "--do_eval", "--do_predict")
    out, err = classify(*words, output_dir=run, eval_steps=22)
    assert "finished" in err and "wrote 61" not in err
    assert path.read_bytes() == before
    assert sorted(os.listdir(run)) == names
    classify("--do_predict", output_dir=run)  # with the best weights, too
    both = map(np.loadtxt, (path, io.BytesIO(before)))
    np.testing.assert_allclose(*both, atol=1e-5)


OWN = {"task_name": "tsv", "text_column": 3, "label_column": 0, "header": True}
EDITED = "was edited after the training; expected the file that the run wrote"


@pytest.mark.parametrize(
    ("words", "named", "edit", "message"),
    [
        # The same examples in another order.
        ("train", {}, ("train.tsv",), "run with other training data; pass"),
        ("train nodo_lower_case", {}, (), "case=False; expected True, which"),
        ("train nostrip_accents", {}, (), "accents=False; expected True, whi"),
        ("eval nodo_lower_case", {}, (), "case=False; expected True, which"),
        ("train", {**OWN, "labels": "1,0"}, (), "expected classes 1, 0"),
        ("eval", {"vocab_file": None}, ("vocab.txt", "dog", "fox"), EDITED),
        ("eval", OWN, ("task.json", '"0"', '"2"'), EDITED),
        ("train", OWN, ("task.json", '"0"', '"2"'), EDITED),
    ],
)
def test_what_does_not_belong_to_a_run_changes_nothing(
    made, classify, tmp_path, monkeypatch, words, named, edit, message
):
    run = shutil.copytree(made / "run", tmp_path / "again")
    for name in ("dev.tsv", "train.tsv"):
        shutil.copy(made / name, tmp_path)
    if edit == ("train.tsv",):
        header, *lines = (made / "train.tsv").read_text().splitlines()
        text = "\n".join([header, *reversed(lines), ""])
        (tmp_path / "train.tsv").write_text(text)
    elif edit:
        text = (run / edit[0]).read_text()
        (run / edit[0]).write_text(text.replace(*edit[1:]))
    before = {path: path.read_bytes() for path in run.glob("*.*")}
    monkeypatch.setattr("sys.argv", ["again"])
    named = {"data_dir": tmp_path, "eval_steps": 22, **named}
    if "eval" in words:
        named |= {"init_checkpoint": None, "bert_config_file": None}
    if named.get("task_name") == "tsv":
        named |= {"data_dir": None, "eval_file": tmp_path / "dev.tsv"}
        named["train_file"] = tmp_path / "train.tsv"
    words = f"--do_{words}".replace(" ", " --").split()
    _, err = classify(*words, code=2, output_dir=run, **named)
    assert message in err.splitlines()[-1]
    assert {path: path.read_bytes() for path in run.glob("*.*")} == before


def test_an_export_tells_its_scores_and_an_example(made):
    extra = made / "export" / "assets.extra"
    metrics = json.loads((extra / "metrics.json").read_text())
    result = run_folders.results(made / "run")
    del result["global_step"]
    assert metrics.items() >= result.items()
    assert metrics["openvino_f1"] == metrics["eval_f1"]
    assert metrics["openvino_changed_labels"] == 0
    example = json.loads((extra / "example.json").read_text())
    rows = [row[3:] for row in rows_of(made / "dev.tsv")]
    assert [example["text"], example["text_b"]] in rows


@pytest.mark.long
def test_an_export_in_bfloat16_is_half_as_large_and_nearly_equal(
    made, classify, tmp_path
):
    small_one = tmp_path / "bfloat16"
    classify(  # without the files of the task, which still has pairs
        init_checkpoint=made / "run" / "best",
        export_dir=small_one,
        export_precision="bfloat16",
    )
    sizes, answers = [], []
    rows = [row[3:] for row in rows_of(made / "test.tsv")[1:]]
    text, text_b = (tf.constant(column) for column in zip(*rows, strict=True))
    for folder in (made / "export", small_one):
        model = tf.saved_model.load(str(folder))
        call = model.signatures["serving_default"]
        sizes.append(
            sum(int(tf.size(x)) * x.dtype.size for x in call.variables)
        )
        answers.append(call(text=text, text_b=text_b)["probabilities"].numpy())
    assert sizes[1] < 0.51 * sizes[0]
    np.testing.assert_allclose(*answers, atol=0.02)
    assert not np.array_equal(*answers)


def test_a_model_of_other_labels_gets_a_new_head(classify, made, tmp_path):
    table = tmp_path / "animals.csv"
    animals = ["cat", "dog", "bird"] * 10
    lines = [f"the {animal} sees,{animal}" for animal in animals]
    table.write_text("\n".join(["text,label", *lines, ""]))
    _, err = classify(
        "--do_train",
        "--do_eval",
        task_name="csv",
        data_dir=None,
        train_file=table,
        eval_file=table,
        init_checkpoint=made / "run",
        num_train_epochs=1,
    )
    assert "3 labels, 2 x 15: head from frozen features, 1 epoch" in err
    report = json.loads((tmp_path / "run" / "eval_report.json").read_text())
    assert report["references"]["eval_accuracy/frozen"] == 1.0
