"""Labels of the weights that predict, and what else they record."""

import dataclasses
import json

import pytest

from bert.common.errors import UserError
from bert.tasks.classification import inputs
from bert.tasks.classification.settings import Settings
from tests.helpers import run_folders


@pytest.fixture
def write(tmp_path):
    """Writes the files of a trained model that the labels are read from."""

    def write(name, labels, kind="classes", settings=None, **more):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True, parents=True)
        task = {"kind": kind, "labels": labels, **more}
        (folder / "task.json").write_text(json.dumps(task))
        (folder / "checkpoint").touch()
        if settings:
            described = json.dumps({"settings": settings})
            (folder / "model.ckpt-7.json").write_text(described)
            (folder / "model.ckpt-7.index").touch()
        return folder

    return write


@pytest.fixture
def task_of(tmp_path):
    """The task that predicts a table."""

    def task_of(*words, **named):
        (tmp_path / "table.tsv").write_text("t\none\ntwo\n")
        named = {"output_dir": tmp_path / "none", **named}
        settings = run_folders.parse(
            Settings,
            *("--do_predict", *words),
            task_name="tsv",
            text_column="t",
            predict_file=tmp_path / "table.tsv",
            **named,
        )
        return inputs.read(run_folders.opened(settings))[0]

    return task_of


def test_labels_are_those_of_the_weights_that_predict(write, task_of):
    named = {"init_checkpoint": write("spam", ["ham", "spam"])}
    named["output_dir"] = output = write("output", ["no", "yes"])
    assert task_of(**named).labels.names == ("no", "yes")
    (output / "checkpoint").unlink()  # of an earlier prediction
    assert task_of(**named).labels.names == ("ham", "spam")
    write("output/seed_1", ["no", "yes"])  # whose weights are not read
    assert task_of(**named).labels.names == ("ham", "spam")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], "labels: multi_label a, b; exp"),
        (["--multi_label", "--labels=b,a"], "a, b; expected multi_label b, a"),
        (["--multi_label", "--labels=x,y"], ("x", "y")),  # other names
    ],
)
def test_labels_that_the_weights_do_not_have(write, task_of, words, found):
    named = {"init_checkpoint": write("model", ["a", "b"], "multi_label")}
    if isinstance(found, tuple):
        assert task_of(*words, **named).labels.names == found
        return
    with pytest.raises(UserError, match=found):
        task_of(*words, **named)


@pytest.mark.parametrize(
    ("words", "recorded", "length"),
    [
        ("--do_predict", {"max_seq_length": 67}, 67),
        ("--do_train", {"max_seq_length": 67}, 67),  # it goes on
        ("--do_predict --max_seq_length=31", {"max_seq_length": 67}, 31),
        ("--do_predict --max_seq_length=128", {"max_seq_length": 67}, 128),
        ("--do_predict", {}, 53),  # of the checkpoint, as without labels
    ],
)
def test_the_length_is_that_of_the_weights(
    write, tmp_path, words, recorded, length
):
    run = write("run", ["a"], settings={"max_seq_length": 53}, **recorded)
    words = words.split()
    named = {"task_name": "mrpc", "output_dir": run}
    settings = run_folders.parse(Settings, *words, **named)
    settings = run_folders.opened(settings).settings
    assert settings.max_seq_length == length
    new = dataclasses.replace(settings, output_dir=str(tmp_path / "new"))
    start = dataclasses.replace(new, init_checkpoint=str(run), do_train=True)
    assert run_folders.opened(start).trained is None


@pytest.mark.parametrize(
    ("words", "recorded", "expected"),
    [
        ([], {}, ("head", "", 0)),
        ([], {"truncate": "tail"}, ("tail", "", 0)),
        ([], {"windows": {"pool": "max", "stride": 5}}, ("head", "max", 5)),
        (["--long_texts=windows"], {}, ("head", "mean", 21)),
        (
            ["--long_texts=windows", "--doc_stride=9", "--pool_windows=max"],
            {},
            ("head", "max", 9),
        ),
        (
            ["--long_texts=truncate", "--truncate=head_tail"],
            {"windows": {"pool": "max", "stride": 5}},
            ("head_tail", "", 0),
        ),
    ],
)
def test_long_texts_are_read_as_recorded_or_given(
    write, task_of, words, recorded, expected
):
    named = {"init_checkpoint": write("run", ["a", "b"], **recorded)}
    found = task_of(*words, **named, max_seq_length=31).long_texts
    assert dataclasses.astuple(found) == expected


@pytest.mark.parametrize(
    ("below", "recorded", "expected"),
    [
        (0.7, {"cuts": [0.0, 1.0]}, "unknown_below=0.7; .* without --tune"),
        (0.0, {"cuts": [0.0, 1.0]}, 0.0),
        (0.7, {"unknown_below": 0.5}, 0.7),
        (0.0, {"unknown_below": 0.5}, 0.0),
        (None, {"unknown_below": 0.5}, 0.5),
    ],
)
def test_a_minimum_probability_replaces_the_recorded_one(
    write, task_of, below, recorded, expected
):
    """Tuned thresholds exclude it."""
    named = {"init_checkpoint": write("run", ["a", "b"], decision=recorded)}
    named |= {} if below is None else {"unknown_below": below}
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            task_of(**named)
        return
    decision = task_of(**named).labels.decision
    assert decision.unknown_below == expected
    assert [*decision.thresholds] == recorded.get("cuts", [])


def test_tuned_thresholds_say_that_they_replace_a_minimum(
    write, task_of, tmp_path, capsys
):
    recorded = {"unknown_below": 0.5}
    named = {"init_checkpoint": write("run", ["a", "b"], decision=recorded)}
    named["eval_file"] = tmp_path / "dev.tsv"
    named["eval_file"].write_text("t\tlabel\none\ta\ntwo\tb\n")
    task_of("--tune_thresholds", "--do_eval", **named)
    line = "--tune_thresholds replaces the recorded --unknown_below=0.5\n"
    assert line in capsys.readouterr().err


@pytest.mark.parametrize("name", ["eval_fraction", "eval_share"])  # the former
def test_another_fraction_than_that_of_the_training_is_reported(
    write, tmp_path, capsys, name
):
    run = write("run", ["a", "b"], settings={name: 0.2, "random_seed": 7})
    table = tmp_path / "table.tsv"
    rows = [f"text {i}\t{'ab'[i % 2]}\n" for i in range(18)]
    table.write_text("text\tlabel\n" + "".join(rows))
    named = {"task_name": "tsv", "train_file": table, "output_dir": run}
    for share, seed, count in ((0.2, 7, 0), (0.2, 8, 1), (0.1, 8, 2)):
        changed = {"eval_fraction": share, "random_seed": seed}
        settings = run_folders.parse(Settings, "--do_eval", **named, **changed)
        inputs.read(run_folders.opened(settings))
        err = capsys.readouterr().err
        assert err.count("the evaluation includes training examples") == count
