"""The user's own tables: missing labels, division, warnings."""

import numpy as np
import pytest

from bert.common import command_line
from bert.common.errors import UserError
from bert.data.labels import Labels
from bert.tasks.classification import inputs
from bert.tasks.classification.glue import Split, TextExample, labels_of
from bert.tasks.classification.settings import Settings
from bert.tasks.classification.task import TextClassification
from bert.tasks.task import DEV, TEST
from tests.helpers import run_folders
from tests.helpers.classifier_files import rows_of
from tests.helpers.run_folders import splits


def read(*words, **named):
    for name, value in {"output_dir": "none", **named}.items():
        words += (f"--{name}={value}",)
    settings = command_line.parse(["run_classifier", *words], Settings, "")
    return inputs.read(run_folders.opened(settings))


@pytest.fixture
def notes(capsys):
    """Reads the files; returns the lines that are logged."""

    def notes(*words, **named):
        capsys.readouterr()
        read(*words, **named)
        return capsys.readouterr().err.splitlines()

    return notes


def test_null_labels_are_valid_only_for_prediction(tmp_path, capsys):
    path = tmp_path / "x.jsonl"
    path.write_text('{"t": "one", "l": "b"}\n{"t": "two", "l": null}\n')
    named = {"task_name": "tsv", "text_column": "t", "label_column": "l"}
    with pytest.raises(UserError, match="x.jsonl: rows without a label: 1 of"):
        read("--do_eval", "--labels=a,b", eval_file=path, **named)
    _, files = read("--do_predict", "--labels=a,b", predict_file=path, **named)
    (split,) = files[TEST]
    assert (len(split.rows), split.is_labelled) == (2, False)
    note = "1 of 2 rows have no label; not scored\n"
    assert note in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--labels=a,b"], ["--regression"]])
def test_rows_without_a_label_are_one_message(tmp_path, words):
    path = tmp_path / "x.csv"
    fields = ["", "1", " "] * 4
    path.write_text("t,l\n" + "".join(f"text {x!r},{x}\n" for x in fields))
    named = {"task_name": "csv", "text_column": "t", "label_column": "l"}
    with pytest.raises(UserError) as error:
        read("--do_train", *words, train_file=path, **named)
    assert str(error.value) == (
        f"{path}: rows without a label: 8 of 12 (lines 2, 4, 5, 7, 8, ...); "
        "expected a label in every row of a file for training or evaluation; "
        "fill in the labels, or move these rows to --predict_file"
    )


def test_one_file_is_divided(tmp_path):
    path = tmp_path / "mails.csv"
    rows = [f"text {i},{'ab'[i % 11 == 0]}" for i in range(43)]
    path.write_text("\n".join(["subject,folder", *rows, "alone,c"]))
    flags = {
        "task_name": "csv",
        "train_file": path,
        "text_column": "subject",
        "label_column": "folder",
        "eval_fraction": 0.1,
    }
    task, files = read("--do_train", "--do_eval", **flags)
    counts = [np.bincount(labels_of(x.rows)).tolist() for x in splits(files)]
    assert counts == [[35, 3, 1], [4, 1]]  # a tenth of each label, from 1
    assert task.labels.names == ("a", "b", "c")
    again, other = (
        read("--do_train", "--do_eval", random_seed=seed, **flags)[1]
        for seed in (12345, -2)
    )
    texts, same, others = (
        [row.text for row in one[DEV][0].rows] for one in (files, again, other)
    )
    assert texts == same != others
    with pytest.raises(UserError, match="--eval_fraction and --eval_file"):
        read("--do_train", "--do_eval", eval_file=path, **flags)


def test_a_text_file_to_predict_has_a_text_in_each_line(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("One, two.\n\n'Three'\n")
    _, files = read(
        "--do_predict",
        "--labels=a,b",
        task_name="csv",
        predict_file=path,
        text_column="subject",
        label_column="folder",
    )
    (split,) = files[TEST]
    assert [x.text for x in split.rows] == ["One, two.", "", "'Three'"]
    assert not split.is_labelled


def test_only_labelled_rows_are_scored(tmp_path, capsys):
    task = TextClassification(
        None, Labels(names=("a", "b")), 7, metrics=("accuracy",)
    )
    logits = [*np.array([[1, 2], [3, 4]], "f4")]
    for is_labelled, label, name in ((True, 0, "a"), (False, None, "")):
        rows = [
            TextExample("0", "one", "", 1, 1),
            TextExample("1", "two", "", label, 2),
        ]
        split = Split("x.jsonl", rows, name=TEST)
        wrote = task.write_predictions(
            str(tmp_path), split, [], logits, Settings()
        )
        assert len(wrote) == 2
        assert rows_of(tmp_path / "predictions.tsv") == [
            ["id", "predicted", "probability", "label", "a", "b", "text"],
            ["0", "b", "0.731059", "b", "0.268941", "0.731059", "one"],
            ["1", "b", "0.731059", name, "0.268941", "0.731059", "two"],
        ]
        scored = "x.jsonl | accuracy 0.5000\n" * is_labelled
        assert capsys.readouterr().err == scored


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["caf\u00e9", "cafe\u0301"], r"'cafe\u0301' and 'caf\xe9'"),
        (["spam", "sp\u200bam"], r"'spam' and 'sp\u200bam'"),
        (["1", "1.0"], "'1' and '1.0'"),
        (["-2.00", "-2"], "'-2' and '-2.00'"),
        (["\uff11", "1"], "'1' and '\uff11'"),
        (["a", "A", "b", "B"], "'A' and 'a', 'B' and 'b'"),
        (["1.1", "1.10"], ""),
        (["10", "1.0"], ""),
        (["e", "\u00e9"], ""),
    ],
)
def test_labels_that_look_alike_are_one_warning(tmp_path, notes, names, shown):
    path = tmp_path / "x.csv"
    rows = [f"text {i},{name}\n" for i, name in enumerate(names * 5)]
    path.write_text("".join(["t,l\n", *rows]), "utf-8")
    named = {"task_name": "csv", "text_column": "t", "label_column": "l"}
    lines = notes("--do_train", train_file=path, **named)
    alike = [x for x in lines if "look alike" in x]
    assert len(alike) == bool(shown)
    assert not shown or f"classes: {shown}; use one" in alike[0]


def test_labels_are_counted_and_unusual_ones_reported(tmp_path, notes):
    path = tmp_path / "mails.tsv"
    labels = ["library"] * 6 + ["admin"] * 5 + ["Li  brary"] * 2
    rows = [f"text {i}\t{label}" for i, label in enumerate(labels)]
    rows[2], rows[7] = " \tlibrary", "\tadmin"
    path.write_text("\n".join(["t\tl", *rows]))
    named = {"task_name": "tsv", "text_column": "t", "label_column": "l"}
    named |= {"train_file": path, "eval_file": path}
    empty = f"warning: {path}: 2 rows without text (lines 4, 9)"
    assert notes("--do_train", "--do_eval", **named) == [
        "labels: library 6, admin 5, Li  brary 2",
        f"warning: {path}: fewer than 5 examples of 'Li  brary'",
        f"warning: {path}: labels that look alike are different classes: "
        "'library' and 'Li  brary'; use one spelling for each label",
        empty,
    ]
    rows[7] = "text\tadmin"
    path.write_text("\n".join(["t\tl", *rows]))
    lines = notes("--do_train", "--do_eval", **named)
    assert lines[3:] == [f"warning: {path}: 1 row without text (line 4)"]
    rows[7] = "\tadmin"
    path.write_text("\n".join(["t\tl", *rows]))
    del named["eval_file"]
    lines = notes("--do_train", "--do_eval", eval_fraction=0.5, **named)
    assert lines[-1] == empty and len(lines) == 4
    named["labels"] = "library,admin,Li  brary,odd"
    lines = notes("--do_train", **named)
    assert lines[1].endswith("fewer than 5 examples of 'Li  brary', 'odd'")
    path.write_text("t\tl\n" + "text\ta,b\n" * 5 + "text\t\n")
    named["labels"] = "a,b"
    assert notes("--do_train", "--multi_label", **named) == [
        "labels: a 5, b 5",
        f"warning: {path}: 5 copies of earlier rows (lines 3, 4, 5, 6, 7), "
        "1 of them with another label (lines 7)",
    ]
