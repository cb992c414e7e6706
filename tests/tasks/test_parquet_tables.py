"""The user's own Parquet tables."""

import math

import pyarrow
import pytest
from pyarrow import parquet

import prepare_corpus
from bert.common import command_line
from bert.common.errors import UserError
from bert.tasks.classification import inputs
from bert.tasks.classification.settings import Settings
from bert.tasks.swag import examples as swag
from bert.tasks.task import TRAIN
from tests.helpers import run_folders

MAILS = {
    "mail": ["the cat", "a dog", "tree", "fish"],
    "grade": [1, 0, 0, 1],
    "size": [1.5, 2.0, 2.5, 7.0],
}


def write(path, columns):
    parquet.write_table(pyarrow.table(columns), path)


def settings_of(*words, **named):
    for name, value in {"output_dir": "none", **named}.items():
        words += (f"--{name}={value}",)
    argv = ["run_classifier", *words, "--task_name=tsv", "--text_column=mail"]
    return command_line.parse(argv, Settings, "")


def test_a_classifiers_examples(tmp_path):
    path = tmp_path / "train.parquet"
    write(path, MAILS)
    settings = settings_of("--do_train", train_file=path, label_column="grade")
    task, files = inputs.read(run_folders.opened(settings))
    (split,) = files[TRAIN]
    assert task.labels.names == ("0", "1")
    assert split.path == str(path)
    assert [x[:4] for x in split.rows] == [
        ("0", "the cat", "", 1),
        ("1", "a dog", "", 0),
        ("2", "tree", "", 0),
        ("3", "fish", "", 1),
    ]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([b"x", b"y", b"x", b"y"], ":1: the label is b'x'; expected a string"),
        ([1.0, 0.0, math.nan, 1.0], ": rows without a label: 1 of 4 .lines 3"),
    ],
)
def test_labels_that_are_no_text(tmp_path, labels, message):
    path = tmp_path / "a.parquet"
    write(path, {**MAILS, "grade": labels})
    settings = settings_of("--do_train", train_file=path, label_column="grade")
    with pytest.raises(UserError, match=rf"a\.parquet{message}"):
        inputs.read(run_folders.opened(settings))


def test_choices_of_both_forms(tmp_path):
    write(
        tmp_path / "a.parquet",
        {
            "sent1": ["the cat", "a dog"],
            "sent2": ["it", None],
            "ending0": ["sees", "likes"],
            "ending1": ["finds", "follows"],
            "label": [1, 0],
        },
    )
    first, second = swag.read(str(tmp_path / "a.parquet"), True).rows
    assert (first.context, first.choices) == (
        "the cat",
        ["it sees", "it finds"],
    )
    assert (second.choices, second.label) == (["likes", "follows"], 0)
    write(
        tmp_path / "b.parquet",
        {"context": ["a"], "choices": [["b", "c"]], "label": [1]},
    )
    (found,) = swag.read(str(tmp_path / "b.parquet"), True).rows
    assert (found.choices, found.label) == (["b", "c"], 1)


def test_a_corpus_from_a_column(tmp_path, run_script):
    columns = {
        "title": ["x", "y", "z"],
        "body": ["One here. Two here.\nThree here.", "", "Four here."],
    }
    (tmp_path / "raw").mkdir()
    write(tmp_path / "raw" / "a.parquet", columns)
    (tmp_path / "raw" / "more.txt").write_text("Five here. Six here.")
    code, out, error = run_script(
        prepare_corpus,
        input_file=tmp_path / "raw",
        output_file=tmp_path / "corpus.txt",
        text_field="body",
        num_processes=1,
    )
    assert code == 0, error
    documents = (tmp_path / "corpus.txt").read_text().split("\n\n")
    expected = ["One here.\nTwo here.\nThree here.", "Four here."]
    expected.append("Five here.\nSix here.")
    assert sorted(x.strip() for x in documents) == sorted(expected)
    assert "3 documents" in out
