"""Flags that contradict each other, the labels or the network.

`tests/common/test_rules.py` breaks each of the `RULES`; here are the cases of
rules that are functions, and of checks after a file is read.
"""

import pytest

import run_classifier
import run_pretraining
import run_similarity
from bert.common import command_line, flags
from bert.common.errors import UserError
from bert.data.labels import CLASSES, MULTI_LABEL, REGRESSION, Labels
from bert.tasks.classification import inputs
from bert.tasks.classification.scoring_settings import Scoring
from bert.tasks.classification.settings import OwnTables
from tests.helpers import run_folders

TABLE = "--task_name=tsv --text_column=0 --do_train"
OWN = f"{TABLE} --label_column=1"
FILE = f"{OWN} --train_file=x"
SHARE = f"{FILE} --do_eval --eval_fraction=0.1"
FOLDS = f"{FILE} --do_eval --num_folds=3"
WINDOWS = "--task_name=mrpc --do_predict --long_texts=windows"
CLASSIFIER = [
    (f"{SHARE} --num_seeds=2 --max_time=1m", "--num_seeds and --max_time"),
    (f"{FOLDS} --learning_rate=1,0.5", "--learning_rate=1.0,0.5 and --num_"),
    (f"{FOLDS} --num_seeds=2", "--num_seeds=2 and --num_folds=3; expected one"),
    (f"{FOLDS} --nodo_eval", "--num_folds=3; expected --do_train and --do_e"),
    (f"{FILE} --do_eval --num_folds=1", "--num_folds=1; expected at least 2"),
    (f"{SHARE} --train_batch_size=8,4,8", "=8,4,8; expected each value once"),
    (
        f"{SHARE} --train_batch_size=8,3 --gradient_accumulation_steps=2",
        "--gradient_accumulation_steps=2; expected a divisor of 3, the batch",
    ),
    (f"{SHARE} --learning_rate=1,-1", "--learning_rate=-1.0; expected at lea"),
    (f"{FILE} --do_eval", "no --eval_file; name the file, or pass --eval_frac"),
    ("--do_train --task_name=colla", "=colla; expected csv or tsv for your"),
    ("--do_train", "no --task_name; expected csv or tsv for your own tables"),
    ("--do_train --task_name=csv --noheader", "no --text_column; name the "),
    ("--do_train --task_name=cola", "no --data_dir; pass it or --train_file"),
    ("--do_train --task_name=ax --data_dir=x", "has no train file"),
    (f"{OWN} --data_dir=x", "no --train_file; name the file"),
    (f"{TABLE} --train_file=x", "no --label_column"),
    (f"{FILE} --label_separator=", "--label_separator is empty"),
    (f"{FILE} --delimiter=", "--delimiter=''; expected characters between"),
    (f"{FILE} --labels=a,b,a", "duplicate label in --labels"),
    (
        "--do_predict --task_name=xnli --glue_dir=x",
        "--glue_dir with --task_name=xnli; expected a GLUE task",
    ),
    (f"{FILE} --distill_weight=0.5", "--distill_weight without --teacher; pas"),
    (f"{FILE} --distill_temperature=1", "--distill_temperature without --tea"),
    (f"{WINDOWS} --window_stride=127", "=127; expected at most a window, 126"),
]
PROFILED = ["7", "0:3", "5:4", "a:b", "1:2,3:4", "-1:2"]
CLASSIFIER += [
    (f"{SHARE} --profile_steps={x}", f"--profile_steps: {x!r}; expected first")
    for x in PROFILED
]


@pytest.mark.parametrize(
    ("script", "words", "message"),
    [
        *((run_classifier, *case) for case in CLASSIFIER),
        (
            run_pretraining,
            "--input_file=x --do_train --use_tpu --precision=float16",
            "--precision=float16 on a TPU; expected bfloat16 or float32",
        ),
        (
            run_similarity,
            "--do_train --train_file=x --loss=ranking --text_columns=a",
            "1 --text_columns with --loss=ranking; expected two, or more",
        ),
    ],
)
def test_flags_are_rejected(script, words, message):
    argv = ["script", "--output_dir=none", *words.split()]
    with pytest.raises(UserError) as caught:
        settings = command_line.parse(argv, script.Settings, "")
        inputs.read(run_folders.opened(settings))
    errors = [caught.value, *caught.value.others]
    assert any(message in str(error) for error in errors), errors


OTHER_VALUES = {bool: "true", str: "x", tuple: "a,b", float: 0.25, int: 3}


@pytest.mark.parametrize("one", flags.flags_of(OwnTables), ids=lambda x: x.name)
def test_flags_of_own_tables_are_only_for_own_tables(one):
    argv = ["", "--do_predict", "--task_name=mrpc", "--output_dir=none"]
    argv.append(f"--{one.name}={OTHER_VALUES[one.kind]}")
    with pytest.raises(UserError) as caught:
        command_line.parse(argv, run_classifier.Settings, "")
    assert str(caught.value) == (
        f"--{one.name} with --task_name=mrpc; expected --task_name=tsv"
    )


@pytest.mark.parametrize("name", ["tsv", "csv", "JSONL", "txt"])
def test_own_tables_have_several_names(name):
    words = "--do_predict", f"--task_name={name}", "--text_column=0"
    argv = ["", *words, "--predict_file=x", "--output_dir=none"]
    found = command_line.parse(argv, run_classifier.Settings, "")
    assert found.dataset_name == "tsv"


@pytest.mark.parametrize(
    ("words", "is_changed"),
    [
        ("", False),
        ("--unknown_below=0", True),
        ("--long_texts=windows", True),
        ("--tune_thresholds", True),
        ("--calibrate", True),
    ],
)
def test_flags_that_change_the_decision_are_recorded(words, is_changed):
    argv = ["", "--do_eval", "--output_dir=none", "--task_name=mrpc"]
    argv += ["--data_dir=x", *words.split()]
    found = command_line.parse(argv, run_classifier.Settings, "")
    assert found.changes_decision == is_changed


NAMES = ("a", "b", "c")
TWO, THREE = Labels(CLASSES, NAMES[:2]), Labels(CLASSES, NAMES)
MANY, NUMBER = Labels(MULTI_LABEL, NAMES), Labels(REGRESSION)


@pytest.mark.parametrize(
    ("labels", "named", "found"),
    [
        (TWO, {"metric_for_best_model": "f1", "tune_thresholds": True}, None),
        (MANY, {"metric_for_best_model": "macro_f1"}, None),
        (MANY, {"tune_thresholds": True}, None),
        (NUMBER, {"metric_for_best_model": "mae"}, None),
        (
            THREE,
            {"metric_for_best_model": "f1"},
            "=f1; expected one of accuracy, macro_f1, matthews, loss",
        ),
        (
            NUMBER,
            {"metric_for_best_model": "accuracy"},
            "expected one of pearson, spearman, mae, loss",
        ),
        (NUMBER, {"class_weights": ("balanced",)}, "--class_weights with re"),
        (NUMBER, {"label_smoothing": 0.1}, "--label_smoothing with regressio"),
        (NUMBER, {"calibrate": True}, "--calibrate with regression; expected"),
        (NUMBER, {"unknown_below": 0.1}, "--unknown_below with regression"),
        (THREE, {"tune_thresholds": True}, "with 3 labels; expected two, or"),
        (MANY, {"unknown_below": 0.7}, "=0.7 with --multi_label; expect"),
        (TWO, {"positive_label": "c"}, "--positive_label=c; expected one of"),
    ],
)
def test_flags_fit_the_labels(labels, named, found):
    if found is None:
        Scoring(**named).check_flags_for(labels)
        return
    with pytest.raises(UserError) as caught:
        Scoring(**named).check_flags_for(labels)
    assert found in str(caught.value)
