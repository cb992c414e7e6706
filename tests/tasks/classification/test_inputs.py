"""Files of every task: lines in the real format to texts and labels."""

import json

import pytest

from bert.common import command_line
from bert.common.errors import UserError
from bert.tasks.classification import inputs
from bert.tasks.classification.glue import GLUE_TASKS
from bert.tasks.classification.settings import Settings
from bert.tasks.task import DEV, TEST, TRAIN
from tests.helpers import run_folders
from tests.helpers.glue_lines import CASES, DEV_LINES
from tests.helpers.run_folders import splits

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


def parse(*words, **named):
    named = {"output_dir": "nowhere", **named}
    argv = ["script", *words, *(f"--{k}={v}" for k, v in named.items())]
    return command_line.parse(argv, Settings, "")


def read(*words, **named):
    return inputs.read(run_folders.opened(parse(*words, **named)))


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
    words = {TRAIN: "--do_train", DEV: "--do_eval", TEST: "--do_predict"}
    task, files = read(
        *(words[part] for part in parts), task_name=name, data_dir=tmp_path
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


def test_every_task_has_a_case():
    assert CASES.keys() == GLUE_TASKS.keys()


def test_files_of_several_parts_have_names(tmp_path):
    for _, file, lines, _ in CASES["mnli"]:
        (tmp_path / file).write_text("\n".join(lines))
    _, files = read(
        "--do_eval", "--do_predict", task_name="MNLI", data_dir=tmp_path
    )
    assert [p.subset for p in files[DEV]] == ["", "mismatched"]
    assert [p.submission for p in files[TEST]] == ["MNLI-m"]
    matched, mismatched = files[DEV]
    assert matched.file("eval", ".tsv") == "eval.tsv"
    assert mismatched.file("eval", ".tsv") == "eval_mismatched.tsv"


def test_a_file_of_a_second_part_is_that_part(tmp_path):
    lines = next(x for s, _, x, _ in CASES["mnli"] if s == TEST)
    path = tmp_path / "test_mismatched.tsv"
    path.write_text("\n".join(lines))
    _, files = read("--do_predict", task_name="mnli", predict_file=path)
    (split,) = files[TEST]
    assert (split.subset, split.submission) == ("mismatched", "MNLI-mm")
    path = path.rename(tmp_path / "mine.tsv")
    _, files = read("--do_predict", task_name="mnli", predict_file=path)
    (split,) = files[TEST]
    assert (split.subset, split.submission) == ("", "MNLI-m")


def test_the_names_of_glue_are_known_in_any_spelling(tmp_path):
    for _, file, lines, _ in CASES["sst2"]:
        (tmp_path / file).write_text("\n".join(lines))
    for name in ("sst2", "SST-2", "sst-2"):
        _, files = read("--do_predict", task_name=name, data_dir=tmp_path)
        assert files[TEST][0].submission == "SST-2"


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


def write_own(folder):
    path = folder / "mails.tsv"
    path.write_text("t\tu\tl\none\tx\tno\ntwo\t\tyes\n")
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", "id,text,label\n0,one,b\n1,two,a\n"),
        ("x.jsonl", '{"text":"one","label":"b"}\n{"label":"a","text":"two"}'),
    ],
)
def test_columns_called_text_and_label_need_no_flags(tmp_path, name, content):
    path, new, rows = tmp_path / name, tmp_path / "n.csv", ["one", "two"]
    path.write_text(content)
    named = {"task_name": "csv", "train_file": path, "predict_file": path}
    words = "--do_train", "--do_predict"
    for given in ({}, {"text_column": "text"}, {"label_column": "label"}):
        for split in splits(read(*words, **named, **given)[1]):
            found = [(x.text, x.label) for x in split.rows]
            assert found == [*zip(rows, (1, 0))]

    # Without labels to learn from, another text may have no label.
    named = {"task_name": "csv", "predict_file": new, "labels": "a,b"}
    new.write_text("text,label\none,b\n")
    (split,) = splits(read("--do_predict", **named)[1])
    assert [x.label for x in split.rows] == [1]
    new.write_text("body,label\none,7 kg\n")
    (split,) = splits(read("--do_predict", **named, text_column="body")[1])
    assert [(x.text, x.label) for x in split.rows] == [("one", None)]
    new.write_text("one,7 kg\n")
    (split,) = splits(read("--do_predict", **named, text_column=0)[1])
    assert [x.text for x in split.rows] == ["one"]


def test_own_labels_can_be_given_and_are_recorded(tmp_path):
    path = write_own(tmp_path)
    named = {"task_name": "tsv", "text_column": 0, "eval_file": path}
    named |= {"label_column": 2, "output_dir": tmp_path}
    task, files = read(
        "--do_eval", "--header", labels="yes, no ,maybe", **named
    )
    assert task.labels.names == ("yes", "no", "maybe")
    assert [e[3] for e in examples(files, DEV)[0]] == [1, 0]
    with pytest.raises(UserError, match="the labels are unknown"):
        read("--do_eval", "--header", **named)
    (tmp_path / "task.json").write_text(
        json.dumps({"kind": "classes", "labels": ["yes", "no"]})
    )
    (tmp_path / "checkpoint").touch()
    task, _ = read("--do_eval", "--header", **named)
    assert task.labels.names == ("yes", "no")


def test_an_export_alone_has_both_texts(tmp_path):
    named = {"task_name": "tsv", "labels": "a,b", "export_dir": "none"}
    named |= {"text_column": "t", "output_dir": tmp_path}
    for given, names in (
        ({"text_b_column": "u"}, ("text", "text_b")),
        ({}, ("text",)),
    ):
        assert read(**given, **named)[0].inputs == names


def test_a_share_of_examples_with_several_labels_is_that_of_all(tmp_path):
    path, letters = tmp_path / "t.tsv", "abcdefghij"
    pairs = [f"{x},{y}" for x in letters for y in letters if x < y]
    path.write_text("t\tl\n" + "".join(f"text {x}\t{x}\n" for x in pairs))
    named = {"train_file": path, "task_name": "tsv", "eval_fraction": 0.2}
    named |= {"text_column": "t", "label_column": "l"}
    _, files = read("--do_train", "--do_eval", "--multi_label", **named)
    assert [len(x.rows) for x in splits(files)] == [36, 9]


def test_evaluations_during_training_read_their_file(tmp_path):
    path = write_own(tmp_path)
    named = {"train_file": path, "eval_file": path, "task_name": "tsv"}
    named |= {"text_column": "t", "label_column": "l"}
    for steps, count in ((0, 0), (5, 1)):
        _, files = read("--do_train", eval_steps=steps, **named)
        assert len(files[DEV]) == count


def test_only_a_file_to_predict_needs_ids(tmp_path):
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_text("t,l\none,a\ntwo,b\n")
    test.write_text("id,t\nm1,one\n")
    named = {"task_name": "tsv", "text_column": "t", "label_column": "l"}
    named |= {"train_file": train, "predict_file": test, "id_column": "id"}
    _, files = read("--do_train", "--do_predict", **named)
    assert examples(files, TRAIN) == [
        [("0", "one", "", 0), ("1", "two", "", 1)]
    ]
    assert examples(files, TEST) == [[("m1", "one", "", None)]]


@pytest.mark.parametrize("column", ["id", 0])
def test_an_evaluation_names_the_ids_of_its_file(tmp_path, column):
    (tmp_path / "dev.csv").write_text("id,t,l\nm1,one,a\nm2,two,b\n")
    named = {"text_column": 1, "label_column": 2, "id_column": column}
    named |= {"task_name": "csv", "eval_file": tmp_path / "dev.csv"}
    _, files = read("--do_eval", "--header", labels="a,b", **named)
    assert [x[0] for x in examples(files, DEV)[0]] == ["m1", "m2"]


@pytest.mark.parametrize(("named", "scored"), [("", False), ("b", True)])
def test_a_column_of_blank_labels_is_not_scored(tmp_path, named, scored):
    """A row may have none of several labels, but not every row."""
    path = tmp_path / "x.csv"
    path.write_text(f"t,l\none,\ntwo,{named}\n")
    flags = {"task_name": "tsv", "text_column": "t", "label_column": "l"}
    flags |= {"predict_file": path, "labels": "a,b"}
    (split,) = splits(read("--do_predict", "--multi_label", **flags)[1])
    assert (len(split.rows), split.is_labelled) == (2, scored)


SHARE, FOLDS = "--eval_fraction=0.1", "--num_folds=3"
RUNS = (
    (
        [SHARE, "--num_seeds=2", "--max_time=1m"],
        "--num_seeds and --max_time; expected one of them",
    ),
    (
        [FOLDS, "--learning_rate=1,0.5"],
        "--learning_rate=1.0,0.5 and --num_folds=3; expected one of them",
    ),
    (
        [FOLDS, "--num_seeds=2"],
        "--num_seeds=2 and --num_folds=3; expected one of them",
    ),
    (
        [SHARE, "--train_batch_size=8,4,8"],
        "--train_batch_size=8,4,8; expected each value once",
    ),
    (
        [SHARE, "--train_batch_size=8,3", "--gradient_accumulation_steps=2"],
        "--gradient_accumulation_steps=2; expected a divisor of 3, the batch",
    ),
    (
        [SHARE, "--learning_rate=1,-1"],
        "--learning_rate=-1.0; expected at least 0.0",
    ),
    (
        [FOLDS, "--nodo_eval"],
        "--num_folds=3; expected --do_train and --do_eval",
    ),
    (["--num_folds=1"], "--num_folds=1; expected at least 2"),
    ([FOLDS, SHARE], "--eval_fraction and --num_folds; expected one of them"),
    ([FOLDS, "--eval_file=x"], "--num_folds and --eval_file; expected one of"),
    ([FOLDS, "--eval_steps=5"], "--num_folds and --eval_steps; expected one"),
    ([FOLDS, "--calibrate"], "--num_folds and --calibrate; expected one of"),
    (
        ["--eval_file=x", "--group_column=g"],
        "--group_column without --num_folds or --eval_fraction; pass one of",
    ),
)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--task_name=colla"], "--task_name=colla; expected csv or tsv"),
        (
            [],
            "no --task_name; expected csv or tsv for your own tables, or one",
        ),
        (
            ["--task_name=csv", "--noheader"],
            "no --text_column; name the column of the texts",
        ),
        (["--task_name=cola", "--text_column=0"], "--text_column with"),
        (["--task_name=cola", "--labels=a,b"], "--labels with"),
        (["--task_name=cola"], "no --data_dir; pass it or --train_file"),
        (["--task_name=ax", "--data_dir=x"], "has no train file"),
        (
            ["--task_name=tsv", "--text_column=0", "--label_column=1"]
            + ["--data_dir=x"],
            "no --train_file; name the file",
        ),
        (
            ["--task_name=csv", "--train_file=x", "--do_eval"],
            "no --eval_file; name the file, or pass --eval_fraction",
        ),
        *(
            (
                ["--task_name=tsv", "--text_column=0", "--label_column=1"]
                + ["--train_file=x", "--do_eval", *words],
                found,
            )
            for words, found in RUNS
        ),
        (
            ["--task_name=tsv", "--text_column=0", "--train_file=x"],
            "no --label_column",
        ),
        (
            ["--task_name=tsv", "--text_column=0", "--label_column=1"]
            + ["--regression", "--multi_label", "--train_file=x"],
            "--multi_label and --regression; expected one of them",
        ),
        (
            ["--task_name=tsv", "--text_column=0", "--label_column=1"]
            + ["--label_separator="],
            "--label_separator is empty",
        ),
        (
            ["--task_name=xnli", "--do_predict", "--glue_dir=x"],
            "--glue_dir with --task_name=xnli; expected a GLUE task",
        ),
    ],
)
def test_contradicting_flags_are_reported(words, found):
    with pytest.raises(UserError) as error:
        read("--do_train", *words)
    assert found in str(error.value)
