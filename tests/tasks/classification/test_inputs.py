"""Files of every task: lines in the real format to texts and labels."""

import json
import os

import numpy as np
import pytest

from bert.common.errors import UserError
from bert.tasks.classification import files as text_files
from bert.tasks.classification import inputs, prediction_files
from bert.tasks.classification.glue import GLUE_TASKS
from bert.tasks.classification.settings import Settings
from bert.tasks.task import DEV, TEST, TRAIN
from tests.helpers import run_folders
from tests.helpers.glue_lines import CASES, DEV_LINES
from tests.helpers.run_folders import splits

STEPS = {TRAIN: "--do_train", DEV: "--do_eval", TEST: "--do_predict"}
NLI = ("contradiction", "entailment", "neutral")
NAMES = {
    "mnli": NLI,
    "xnli": NLI,
    "ax": NLI,
    "qnli": ("entailment", "not_entailment"),
    "rte": ("entailment", "not_entailment"),
    "stsb": (),
}
METRICS = {
    "cola": ("matthews", "accuracy"),
    "ax": ("matthews", "accuracy"),
    "mrpc": ("accuracy", "f1"),
    "qqp": ("accuracy", "f1"),
    "stsb": ("pearson", "spearman", "mae"),
}


def read(*words, **named):
    settings = run_folders.parse(Settings, *words, **named)
    return inputs.read(run_folders.opened(settings))


def examples(files, split):
    return [[e[:4] for e in x.rows] for x in files[split]]


@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("name", GLUE_TASKS)
def test_tasks_read_lines_in_the_real_format(tmp_path, name, ending):
    for _, file, lines, _ in CASES[name]:
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes("".join(line + ending for line in lines).encode())
    parts = sorted({part for part, *_ in CASES[name]})
    task, files = read(
        *(STEPS[part] for part in parts), task_name=name, data_dir=tmp_path
    )
    for part in parts:
        expected = [found for x, _, _, found in CASES[name] if x == part]
        assert examples(files, part) == expected
    assert task.labels.names == NAMES.get(name, ("0", "1"))
    assert task.metrics == METRICS.get(name, ("accuracy",))


@pytest.mark.parametrize("task", DEV_LINES)
def test_a_dev_file_to_predict_is_read_or_rejected(tmp_path, task):
    """Its labels and ids are never taken for texts."""
    path = tmp_path / "dev.tsv"
    path.write_text("\n".join(DEV_LINES[task]))
    if task == "qqp":
        _, files = read("--do_predict", task_name=task, predict_file=path)
        assert examples(files, TEST) == [[("201359", "Why?", "How?", None)]]
        return
    with pytest.raises(UserError, match=f"{path}:1: no column "):
        read("--do_predict", task_name=task, predict_file=path)


def test_texts_for_a_teacher_need_only_the_columns_of_the_texts(tmp_path):
    lines = {"train": ["sentence\tlabel", "good\t1", "bad\t0"]}
    lines["texts"] = ["sentence", "so so"]
    for name, rows in lines.items():
        (tmp_path / f"{name}.tsv").write_text("\n".join([*rows, ""]))
    _, files = read(
        "--do_train",
        "--teacher=teacher",
        task_name="sst2",
        data_dir=tmp_path,
        unlabelled_file=tmp_path / "texts.tsv",
    )
    found = [[(x.text, x.label) for x in file.rows] for file in files[TRAIN]]
    assert found == [[("good", 1), ("bad", 0)], [("so so", None)]]


def test_every_task_has_a_case():
    assert CASES.keys() == GLUE_TASKS.keys()


@pytest.mark.parametrize(
    ("name", "given", "subsets", "submissions"),
    [
        ("MNLI", {}, ["", "mismatched"], ["MNLI-m", "MNLI-mm"]),
        ("mnli", "test_mismatched.tsv", ["mismatched"], ["MNLI-mm"]),
        ("mnli", "mine.tsv", [""], ["MNLI-m"]),
        ("SST-2", {}, [""], ["SST-2"]),
        ("sst-2", {}, [""], ["SST-2"]),
    ],
)
def test_files_of_a_task_have_names(
    tmp_path, name, given, subsets, submissions
):
    """A file of a second part is that part; other names are the first."""
    of_name = CASES[name.lower().replace("-", "")]
    lines = next(x for part, _, x, _ in of_name if part == TEST)
    files = ["test.tsv", "test_matched.tsv", "test_mismatched.tsv", "mine.tsv"]
    for file in files:
        (tmp_path / file).write_text("\n".join(lines))
    named = {"predict_file": tmp_path / given} if given else {}
    named = named or {"data_dir": tmp_path}
    task, found = read("--do_predict", task_name=name, **named)
    assert [x.subset for x in found[TEST]] == subsets
    assert [
        GLUE_TASKS[task.name].submission(x.subset) for x in found[TEST]
    ] == submissions
    for file, subset in zip(found[TEST], subsets):
        logits = np.zeros((len(file.rows), task.num_outputs))
        wrote = prediction_files.write(
            str(tmp_path), file, task.decode([], logits), task
        )
        end = f"_{subset}" if subset else ""
        assert [os.path.basename(x) for x in wrote] == [
            f"test_results{end}.tsv",
            f"predictions{end}.tsv",
        ]


def test_languages_of_xnli_can_differ(tmp_path):
    (tmp_path / "multinli").mkdir()
    (tmp_path / "multinli" / "multinli.train.en.tsv").write_text(
        "premise\thypo\tlabel\none\ttwo\tneutral\n"
    )
    lines = next(x for split, _, x, _ in CASES["xnli"] if split == DEV)
    lines = "\n".join(lines).replace("ar\tneutral", "ur\tneutral")
    (tmp_path / "xnli.dev.tsv").write_text(lines)
    _, files = read(
        "--do_train",
        "--do_eval",
        task_name="xnli",
        data_dir=tmp_path,
        language="ur",
        train_language="en",
    )
    assert examples(files, TRAIN) == [[("0", "one", "two", 2)]]
    assert examples(files, DEV) == [[("0", "a", "b", 2)]]


def test_a_missing_second_part_is_skipped(tmp_path, capsys):
    lines = next(x for part, _, x, _ in CASES["mnli"] if part == DEV)
    (tmp_path / "dev_matched.tsv").write_text("\n".join(lines))
    _, files = read("--do_eval", task_name="mnli", data_dir=tmp_path)
    assert [x.subset for x in files[DEV]] == [""]
    assert "does not exist; skipping mismatched" in capsys.readouterr().err


LABELS = "--labels=a,b"
TABLE = "id,text,label\n7,one,b\n8,two,a\n"
ONE = "t,u,l\none,x,no\ntwo,,yes\n"
NAMED = "--text_column=t --label_column=l"
PLAIN = [("0", "one", "", 1), ("1", "two", "", 0)]
IDS = [("m1", "one", "", None), ("m2", "two", "", None)]


@pytest.mark.parametrize(
    ("words", "name", "content", "expected"),
    [
        # Columns called text and label need no flags.
        ("--do_train", "x.csv", TABLE, PLAIN),
        ("--do_train --text_column=text", "x.csv", TABLE, PLAIN),
        ("--do_train --label_column=label", "x.csv", TABLE, PLAIN),
        # Without labels to learn from, another text may have no label.
        (f"--do_predict {LABELS}", "x.csv", "text,label\none,b\n", PLAIN[:1]),
        (
            f"--do_predict {LABELS} --text_column=body",
            "x.csv",
            "body,label\none,7 kg\n",
            [("0", "one", "", None)],
        ),
        (
            f"--do_predict {LABELS} --text_column=0",
            "x.csv",
            "one,7 kg\n",
            [("0", "one", "", None)],
        ),
        (
            f"--do_predict {LABELS} {NAMED} --id_column=id",
            "x.csv",
            "id,t\nm1,one\nm2,two\n",
            IDS,
        ),
        # A text file to predict has a text in each line.
        (
            f"--do_predict {LABELS} --text_column=subject",
            "x.txt",
            "One, two.\n\n'Three'\n",
            [
                ("0", "One, two.", "", None),
                ("1", "", "", None),
                ("2", "'Three'", "", None),
            ],
        ),
        (
            f"--do_eval --header {LABELS} --id_column=id {NAMED}",
            "x.csv",
            "id,t,l\nm1,one,a\nm2,two,b\n",
            [("m1", "one", "", 0), ("m2", "two", "", 1)],
        ),
        # Only a file to predict needs ids.
        (f"--do_train {NAMED} --id_column=id", "x.csv", ONE, None),
    ],
)
def test_own_tables_need_few_flags(tmp_path, words, name, content, expected):
    path = tmp_path / name
    path.write_text(content)
    part, step = next((x, y) for x, y in STEPS.items() if y in words)
    flag = {TRAIN: "train_file", DEV: "eval_file", TEST: "predict_file"}[part]
    _, files = read(*words.split(), task_name="csv", **{flag: path})
    (found,) = examples(files, part)
    expected = expected or [("0", "one", "", 0), ("1", "two", "", 1)]
    assert found == expected and step in words


def test_own_labels_can_be_given_and_are_recorded(tmp_path):
    path = tmp_path / "mails.tsv"
    path.write_text("t\tl\none\tno\ntwo\tyes\n")
    named = {"task_name": "tsv", "text_column": 0, "eval_file": path}
    named |= {"label_column": 1, "output_dir": tmp_path}
    task, files = read("--do_eval", "--header", labels="yes, no ,odd", **named)
    assert task.labels.names == ("yes", "no", "odd")
    assert task.metrics == ("accuracy", "macro_f1")
    assert [e[3] for e in examples(files, DEV)[0]] == [1, 0]
    with pytest.raises(UserError, match="the labels are unknown"):
        read("--do_eval", "--header", **named)
    (tmp_path / "task.json").write_text(
        json.dumps({"kind": "classes", "labels": ["yes", "no"]})
    )
    (tmp_path / "checkpoint").touch()
    task, _ = read("--do_eval", "--header", **named)
    assert task.labels.names == ("yes", "no")


def test_a_label_that_training_lacks_is_listed_in_labels(tmp_path):
    """A small training file may lack a rare one."""
    train, dev = tmp_path / "train.csv", tmp_path / "dev.csv"
    train.write_text("text,label\none,a\ntwo,b\nthree,a\nfour,b\n")
    dev.write_text("text,label\nfive,a\nsix,b\nseven,c\neight,a\n")
    named = {"train_file": train, "eval_file": dev, "task_name": "csv"}
    with pytest.raises(UserError) as error:
        read("--do_train", "--do_eval", **named)
    assert str(error.value) == (
        f"{dev}:4: unknown label 'c' in 1 of 4 rows; expected one of a, b; to "
        "train a model with more labels, list all of them in --labels"
    )
    _, files = read("--do_train", "--do_eval", **named, labels="a,b,c")
    assert [e[3] for e in examples(files, DEV)[0]] == [0, 1, 2, 0]

    # The labels of a trained model are fixed.
    recorded = json.dumps({"kind": "classes", "labels": ["a", "b"]})
    (tmp_path / "task.json").write_text(recorded)
    (tmp_path / "checkpoint").touch()
    named = {"eval_file": dev, "task_name": "csv", "output_dir": tmp_path}
    with pytest.raises(UserError, match="list all of them in --labels"):
        read("--do_eval", **named)
    glue = tmp_path / "msr.tsv"
    rows = [f"{label}\t1\t2\ta\tb\n" for label in ("x", 0, 1, 2, 1)]
    glue.write_text("".join(rows))
    with pytest.raises(UserError, match="'2' in 1 of 4 .* the right file"):
        read("--do_train", task_name="mrpc", train_file=glue)


def test_an_export_alone_has_both_texts(tmp_path):
    named = {"task_name": "tsv", "labels": "a,b", "export_dir": "none"}
    named |= {"text_column": "t", "output_dir": tmp_path}
    for given, names in (
        ({"text_b_column": "u"}, ("text", "text_b")),
        ({}, ("text",)),
    ):
        assert read(**given, **named)[0].inputs == names


def test_one_file_is_divided(tmp_path):
    """A row may have several labels; the evaluation reads the same file."""
    path, letters = tmp_path / "t.tsv", "abcdefghij"
    pairs = [f"{x},{y}" for x in letters for y in letters if x < y]
    path.write_text("t\tl\n" + "".join(f"text {x}\t{x}\n" for x in pairs))
    named = {"train_file": path, "task_name": "tsv", "eval_fraction": 0.2}
    named |= {"text_column": "t", "label_column": "l"}
    _, files = read("--do_train", "--do_eval", "--multi_label", **named)
    assert [len(x.rows) for x in splits(files)] == [36, 9]
    assert [x.part for x in splits(files)] == ["", "9 of its rows"]


def test_evaluations_during_training_read_their_file(tmp_path):
    path = tmp_path / "mails.csv"
    path.write_text(TABLE)
    named = {"train_file": path, "eval_file": path, "task_name": "csv"}
    for steps, count in ((0, 0), (5, 1)):
        _, files = read("--do_train", eval_steps=steps, **named)
        assert len(files[DEV]) == count


@pytest.mark.parametrize(
    ("rows", "words", "is_labelled"),
    [
        ("one,\ntwo,\n", ["--multi_label"], False),
        ("one,\ntwo,b\n", ["--multi_label"], True),
        ("one,a\ntwo,b\n", [], True),
        ("one,a\ntwo,\n", [], False),
        ("one,\ntwo,\n", [], False),
    ],
)
def test_a_file_with_missing_labels_is_not_scored(
    tmp_path, capsys, rows, words, is_labelled
):
    """A row may have none of several labels, but not every row."""
    path = tmp_path / "x.csv"
    path.write_text(f"text,label\n{rows}")
    flags = {"task_name": "csv", "predict_file": path, "labels": "a,b"}
    (split,) = splits(read("--do_predict", *words, **flags)[1])
    assert (len(split.rows), text_files.is_labelled(split.rows)) == (
        2,
        is_labelled,
    )
    note = " of 2 rows have no label; not scored\n"
    assert (note in capsys.readouterr().err) == (not is_labelled)


@pytest.fixture
def notes(tmp_path, capsys):
    """Reads a table; returns the lines that are logged, without its path."""

    def notes(rows, *words, **named):
        path = tmp_path / "mails.tsv"
        path.write_text("\n".join(["text\tlabel", *rows]), "utf-8")
        capsys.readouterr()
        named = {"task_name": "tsv", "train_file": path, **named}
        read("--do_train", *words, **named)
        lines = capsys.readouterr().err.splitlines()
        return [x.removeprefix(f"warning: {path}: ") for x in lines]

    return notes


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
def test_labels_that_look_alike_are_one_warning(notes, names, shown):
    lines = notes(f"text {i}\t{name}" for i, name in enumerate(names * 5))
    alike = [x for x in lines if "look alike" in x]
    assert len(alike) == bool(shown)
    assert not shown or f"classes: {shown}; use one" in alike[0]


def test_labels_are_counted_and_unusual_rows_reported(notes):
    labels = ["library"] * 6 + ["admin"] * 5 + ["odd"] * 2
    rows = [f"text {i}\t{label}" for i, label in enumerate(labels)]
    rows[2], rows[7] = " \tlibrary", "\tadmin"
    expected = [
        "labels: library 6, admin 5, odd 2",
        "fewer than 5 examples of 'odd'",
        "2 rows without text (lines 4, 9)",
    ]
    assert notes(rows) == expected
    divided = notes(rows, "--do_eval", eval_fraction=0.5)
    assert divided[2:] == expected[2:]
    rows[7] = "text\tadmin"
    assert notes(rows, labels="library,admin,odd,none")[1:] == [
        "fewer than 5 examples of 'odd', 'none'",
        "1 row without text (line 4)",
    ]
    copies = ["text\ta,b"] * 5 + ["text\t"]
    assert notes(copies, "--multi_label", labels="a,b") == [
        "labels: a 5, b 5",
        "5 copies of earlier rows (lines 3, 4, 5, 6, 7), 1 of them with "
        "another label (lines 7)",
    ]


def test_rows_without_a_label_are_one_message(notes):
    rows = [f"text {x!r}\t{x}" for x in ["", "1", " "] * 4]
    with pytest.raises(UserError) as error:
        notes(rows)
    assert str(error.value).endswith(
        "mails.tsv: rows without a label: 8 of 12 (lines 2, 4, 5, 7, 8, ...); "
        "expected a label in every row of a file for training or evaluation; "
        "fill in the labels, or move these rows to --predict_file"
    )
