import os

import numpy as np
import pytest

from bert.data.labels import (
    CLASSES,
    MULTI_LABEL,
    PLAIN,
    REGRESSION,
    Labels,
    PostProcessing,
)
from bert.data.tables import InputFile
from bert.tasks.classification import prediction_files
from bert.tasks.classification.files import TextExample
from bert.tasks.classification.settings import Settings
from bert.tasks.classification.task import TextClassification
from tests.helpers.classifier_files import rows_of

THREE = Labels(CLASSES, ("a", "b", "c"))
FOUR = Labels(CLASSES, ("a", "b", "c", "d"))
SEVERAL = Labels(MULTI_LABEL, ("x", "y", "z"), separator=";")
NUMBER = Labels(REGRESSION)
LOGITS = np.log(np.array([[1, 2, 5], [4, 2, 2]], np.float32))


def task_of(labels, decision=PLAIN, has_pairs=False):
    task = TextClassification(None, labels, 7, has_pairs=has_pairs)
    return task.with_decision(decision)


def write(path, rows, logits, task):
    """Writes `predictions.tsv`."""
    found = task.decode([], [*logits])
    prediction_files.write_predictions(str(path), rows, found, task)


def test_predictions_have_ids_and_names(tmp_path):
    path = tmp_path / "predictions.tsv"
    rows = [
        TextExample("q7", "one", "two", 1, 2),
        TextExample("a\tb\\n", "three\tfour\r\n", "", None, 3),
    ]
    write(path, rows, LOGITS, task_of(THREE, has_pairs=True))
    assert path.read_text() == (
        "id\tpredicted\tprobability\tlabel\ta\tb\tc\ttext\ttext_b\n"
        "q7\tc\t0.625000\tb\t0.125000\t0.250000\t0.625000\tone\ttwo\n"
        "a\\tb\\\\n\ta\t0.500000\t\t0.500000\t0.250000\t0.250000\t"
        "three\\tfour\\r\\n\t\n"
    )
    with pytest.raises(ValueError, match="argument 2 is longer"):
        write(path, rows[:1], LOGITS, task_of(THREE))


def test_several_labels_and_none(tmp_path):
    logits = np.array([[0.0, -3.0, 2.0], [-1.0, -1.0, -1.0]], np.float32)
    path = tmp_path / "predictions.tsv"
    rows = [TextExample("0", "one", "", x, 2) for x in ([0, 1, 1], [0, 0, 0])]
    write(path, rows, logits, task_of(SEVERAL))
    lines = [x.split("\t")[:3] for x in path.read_text().splitlines()]
    assert lines == [
        ["id", "predicted", "label"],
        ["0", "x;z", "y;z"],
        ["0", "", ""],
    ]


def test_a_table_has_the_probability_of_the_shown_or_rejected_class(tmp_path):
    """With thresholds, another class may have a higher probability."""
    rows = [TextExample(str(i), "a") for i in range(2)]
    rejecting = PostProcessing(unknown_below=0.6)
    cuts = PostProcessing(thresholds=(0.0, 0.0, 2.0))
    for decision, expected in (
        (rejecting, [["c", "0.625000"], ["", "0.500000"]]),
        (cuts, [["b", "0.250000"], ["a", "0.500000"]]),
    ):
        write(tmp_path / "p.tsv", rows, LOGITS, task_of(THREE, decision))
        found = [row[1:3] for row in rows_of(tmp_path / "p.tsv")[1:]]
        assert found == expected


@pytest.mark.parametrize("label", [0, None])
def test_only_a_labelled_file_is_scored(tmp_path, capsys, label):
    task = TextClassification(
        None, Labels(names=("a", "b")), 7, metrics=("accuracy",)
    )
    rows = [TextExample("q", "one", "", x, 1) for x in (1, label)]
    logits = [*np.array([[1, 2], [3, 4]], "f4")]
    file = InputFile("x.jsonl", rows)
    wrote = task.write_predictions(str(tmp_path), file, [], logits, Settings())
    assert [os.path.basename(x) for x in wrote] == [
        "test_results.tsv",
        "predictions.tsv",
    ]
    shown = [row[3] for row in rows_of(tmp_path / "predictions.tsv")]
    assert shown == ["label", "b", "" if label is None else "a"]
    scored = "x.jsonl | accuracy 0.5000\n" * (label is not None)
    assert capsys.readouterr().err == scored


def test_the_worst_errors_name_their_rows():
    rows = [
        TextExample("q", "one", "", 0, 2),
        TextExample("r", "two", "three", 2, 5),
        TextExample("s", "four", "", 0, 7),
    ]
    logits = np.log(np.array([[2, 1, 5], [6, 1, 1], [5, 2, 1]], np.float32))
    evaluation = task_of(THREE).score(rows, [], [*logits])
    found = evaluation.report["worst_errors"]
    assert [(x["id"], x["line"], x["text"]) for x in found] == [
        ("r", 5, ["two", "three"]),
        ("q", 2, "one"),
    ]
    assert (found[0]["label"], found[0]["predicted"]) == ("c", "a")
    assert found[0]["probability"] == pytest.approx(6 / 8)


@pytest.mark.parametrize(
    ("labels", "found", "never"),
    [
        (THREE, [0, 1, 0, 1, 0], "'c' (2)"),
        (THREE, [0, 1, 2, 1, 0], ""),
        (FOUR, [0, 1, 2, 1, 0], ""),  # no example has the fourth
        (THREE, [0, 0, 0, 0, 0], ""),  # see below
        (SEVERAL, [[1, 0, 0]] * 4 + [[0, 0, 0]], "'y' (3), 'z' (1)"),
        (SEVERAL, [[0, 0, 0]] * 5, ""),
    ],
    ids=str,
)
def test_labels_that_are_never_predicted_are_named(labels, found, never):
    gold = [0, 2, 1, 2, 0]
    if labels is SEVERAL:
        gold = [[1, 1, 0], [0, 1, 0], [1, 1, 1], [1, 0, 0], [0, 0, 0]]
    rows = [TextExample("0", "a", "", x, 2) for x in gold]
    logits = np.array(found) - 0.5
    if labels is not SEVERAL:
        logits = np.eye(labels.size)[found]
    warnings = task_of(labels).score(rows, [], [*logits]).warnings
    told = [x for x in warnings if "never predicted" in x]
    is_one = all(x == found[0] for x in found)
    assert any("all 5 predictions are" in x for x in warnings) == is_one
    expected = (
        "never predicted, with the number of examples: "
        f"{never}; train for more epochs"
    )
    assert told == [expected] * bool(never)


def test_weights_are_advised_for_rare_labels_alone():
    """Few steps are the cause if a label is not rare."""
    rare, equal = [0] * 50 + [1] * 42 + [2] * 8, [0] * 34 + [1] * 33 + [2] * 33
    for gold, weights, remedy in (
        (rare, (), "pass --class_weights=balanced"),
        (rare, (1.0, 1.0, 1.0), "train for more epochs"),
        (equal, (), "train for more epochs"),
    ):
        rows = [TextExample("0", "a", "", x, 2) for x in gold]
        task = TextClassification(None, THREE, 7, class_weights=weights)
        found = np.eye(3)[[min(x, 1) for x in gold]]
        (line,) = task.score(rows, [], [*found]).warnings
        assert line.startswith("never predicted, with the number of examples: ")
        assert line.endswith(f"; {remedy}")


def test_numbers_are_clipped_to_the_range_of_glue(tmp_path):
    logits = np.array([[3.14159], [7.0], [-1.0]], np.float32)
    task = task_of(NUMBER)
    found = task.decode([], [*logits])
    rows = [TextExample(key, f"text {key}", "", 0.25, 7) for key in "012"]
    path = prediction_files.write_submission(
        str(tmp_path / "glue"), "STS-B", rows, found
    )
    assert path == f"{tmp_path}/glue/STS-B.tsv"
    with open(path) as file:
        assert file.read() == "index\tprediction\n0\t3.14159\n1\t5.0\n2\t0.0\n"
    rows = [TextExample(key, f"text {key}", "", 0.25, 7) for key in "abc"]
    write(tmp_path / "p.tsv", rows, logits, task)
    assert (tmp_path / "p.tsv").read_text() == (
        "id\tpredicted\tlabel\ttext\na\t3.14159\t0.25\ttext a\n"
        "b\t7.0\t0.25\ttext b\nc\t-1.0\t0.25\ttext c\n"
    )
    near = np.float32(0.5) + np.arange(150, dtype="f4")[:, None] / 1e5
    rows = [TextExample(str(i), "a", "", None, i) for i in range(150)]
    write(tmp_path / "p.tsv", rows, near, task)
    assert len({row[1] for row in rows_of(tmp_path / "p.tsv")[1:]}) == 150


def test_the_example_of_an_export_has_about_a_hundred_characters():
    rows = [TextExample(text="a" * n, text_b="b") for n in (3, 95, 108, 300)]
    assert task_of(THREE).example(rows) == {"text": "a" * 95, "text_b": "b"}


@pytest.mark.parametrize(
    ("labels", "has_pairs", "can_rank"),
    [
        (Labels(CLASSES, ("1", "0")), True, True),
        (Labels(CLASSES, ("1", "0")), None, True),
        (Labels(CLASSES, ("1", "0")), False, False),
        (Labels(CLASSES, ("a", "b")), True, False),
        (NUMBER, True, True),
        (NUMBER, False, False),
    ],
)
def test_pairs_with_a_score_are_ranked(labels, has_pairs, can_rank):
    assert task_of(labels, has_pairs=has_pairs).can_rank == can_rank
