"""Labels of the weights that predict, and their order."""

import dataclasses
import json

import pytest

from bert.common import command_line
from bert.common.errors import UserError
from bert.tasks.classification import inputs
from bert.tasks.classification.settings import Settings
from tests.helpers import run_folders


def write_model(folder, labels, kind="classes", **more):
    """Writes the files of a trained model that the labels are read from."""
    folder.mkdir(exist_ok=True, parents=True)
    task = {"kind": kind, "labels": labels, **more}
    (folder / "task.json").write_text(json.dumps(task))
    (folder / "checkpoint").touch()


def labels_of(folder, *words, **named):
    """Names of the labels with which a table is predicted."""
    table = folder / "table.tsv"
    table.write_text("t\none\ntwo\n")
    named |= {"task_name": "tsv", "text_column": "t", "predict_file": table}
    named = {"output_dir": folder / "none", **named}
    argv = ["", "--do_predict", *words]
    argv += [f"--{name}={value}" for name, value in named.items()]
    settings = command_line.parse(argv, Settings, "")
    task, _ = inputs.read(run_folders.opened(settings))
    return task.labels.names


def test_labels_are_those_of_the_weights_that_predict(tmp_path):
    write_model(tmp_path / "spam", ["ham", "spam"])
    output = tmp_path / "output"
    named = {"init_checkpoint": tmp_path / "spam", "output_dir": output}
    write_model(output, ["no", "yes"])  # with its own weights
    assert labels_of(tmp_path, **named) == ("no", "yes")
    (output / "checkpoint").unlink()  # of an earlier prediction
    assert labels_of(tmp_path, **named) == ("ham", "spam")
    write_model(output / "seed_1", ["no", "yes"])  # whose weights are not read
    assert labels_of(tmp_path, **named) == ("ham", "spam")


def test_labels_that_the_weights_do_not_have_are_rejected(tmp_path):
    write_model(tmp_path / "model", ["a", "b"], "multi_label")
    named = {"init_checkpoint": tmp_path / "model"}
    with pytest.raises(UserError, match="labels: multi_label a, b; exp"):
        labels_of(tmp_path, **named)
    with pytest.raises(
        UserError, match="multi_label a, b; expected multi_label b, a"
    ):
        labels_of(tmp_path, "--multi_label", labels="b,a", **named)
    found = labels_of(tmp_path, "--multi_label", labels="x,y", **named)
    assert found == ("x", "y")  # other names for the same


@pytest.mark.parametrize(
    ("words", "recorded", "length"),
    [
        ("--do_predict", {"max_seq_length": 67}, 67),
        ("--do_train", {"max_seq_length": 67}, 67),  # it goes on
        ("--do_predict --max_seq_length=31", {"max_seq_length": 67}, 31),
        ("--do_predict", {}, 53),  # of the checkpoint, as without labels
    ],
)
def test_the_length_is_that_of_the_weights(tmp_path, words, recorded, length):
    write_model(tmp_path / "run", ["a", "b"], **recorded)
    described = json.dumps({"settings": {"max_seq_length": 53}})
    (tmp_path / "run" / "model.ckpt-7.json").write_text(described)
    (tmp_path / "run" / "model.ckpt-7.index").touch()
    argv = ["", "--task_name=mrpc", f"--output_dir={tmp_path}/run"]
    argv += words.split()
    settings = command_line.parse(argv, Settings, "")
    settings = run_folders.opened(settings).settings
    assert settings.max_seq_length == length
    new = dataclasses.replace(settings, output_dir=str(tmp_path / "new"))
    start = dataclasses.replace(
        new, init_checkpoint=f"{tmp_path}/run", do_train=True
    )
    assert run_folders.opened(start).trained is None


def test_tuned_thresholds_exclude_unknown_labels(tmp_path):
    """Also in a later command than the one that tunes."""
    write_model(tmp_path / "run", ["a", "b"], decision={"cuts": [0.0, 1.0]})
    (tmp_path / "new.txt").write_text("text\n")
    named = {"task_name": "txt", "text_column": 0, "unknown_below": 0.7}
    named |= {"predict_file": tmp_path / "new.txt"}
    named |= {"output_dir": tmp_path, "init_checkpoint": tmp_path / "run"}
    words = ["", "--do_predict", *(f"--{k}={v}" for k, v in named.items())]
    with pytest.raises(UserError, match="unknown_below=0.7; .* without --tune"):
        inputs.read(run_folders.opened(command_line.parse(words, Settings, "")))
    words.append("--unknown_below=0.0")
    inputs.read(run_folders.opened(command_line.parse(words, Settings, "")))


@pytest.mark.parametrize("name", ["eval_fraction", "eval_share"])  # the former
def test_another_fraction_than_that_of_the_training_is_reported(
    tmp_path, capsys, name
):
    write_model(tmp_path / "run", ["a", "b"])
    recorded = {name: 0.2, "random_seed": 7}
    for step, settings in ((9, {}), (10, recorded)):
        path = tmp_path / "run" / f"model.ckpt-{step}"
        path.with_name(f"{path.name}.index").touch()
        text = json.dumps({"settings": settings})
        path.with_name(f"{path.name}.json").write_text(text)
    table = tmp_path / "table.tsv"
    rows = [f"text {i}\t{'ab'[i % 2]}\n" for i in range(18)]
    table.write_text("t\tl\n" + "".join(rows))
    named = {"task_name": "tsv", "text_column": "t", "label_column": "l"}
    named |= {"train_file": table, "output_dir": tmp_path / "run"}
    for share, seed, count in ((0.2, 7, 0), (0.2, 8, 1), (0.1, 8, 2)):
        changed = {"eval_fraction": share, "random_seed": seed}
        words = [f"--{k}={v}" for k, v in (named | changed).items()]
        settings = command_line.parse(["", "--do_eval", *words], Settings, "")
        inputs.read(run_folders.opened(settings))
        err = capsys.readouterr().err
        assert err.count("the evaluation includes training examples") == count
