"""Mistakes that are reported before TensorFlow is imported."""

import pathlib
import subprocess
import sys

import pytest

from bert.modeling.config import BertConfig
from tests.helpers import report_files

ROOT = pathlib.Path(__file__).parents[2]
# Instead of waiting seconds for it, an import of TensorFlow fails.
PROGRAM = """
import importlib, sys
sys.modules["tensorflow"] = None
from bert.common import main
for command in sys.stdin:
    argv = command.split()
    assert main.run(importlib.import_module(argv[0]).main, argv) == 2
"""


def errors_of(commands, folder):
    """Runs commands in one process; returns the line of each."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="\n".join(commands),
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "HOME": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return [x for x in done.stderr.splitlines() if x.startswith("error")]


@pytest.fixture
def folder(tmp_path):
    """Files that every command here has."""
    config = BertConfig(vocab_size=7)
    (tmp_path / "config.json").write_text(config.to_json())
    tokens = "[PAD] [UNK] [CLS] [SEP] [MASK] a b".split()
    (tmp_path / "vocab.txt").write_text("\n".join(tokens) + "\n")
    (tmp_path / "train.tsv").write_text("text\tlabel\na\t0\nb\t1\n")
    (tmp_path / "model").mkdir()
    report_files.write_run(tmp_path / "curves")
    return tmp_path


CLASSIFIER = (
    "run_classifier --task_name=tsv --do_train --train_file=train.tsv "
    "--text_column=text --label_column=label --vocab_file=vocab.txt "
    "--bert_config_file=config.json --output_dir=run"
)
PRETRAINING = (
    "run_pretraining --do_train --input_file=train.tsv --output_dir=run "
    "--bert_config_file=config.json"
)


MISTAKES = [
    (f"{CLASSIFIER} --init_checkpoint=none", "none: no such checkpoint; "),
    (
        "extract_features --input_file=train.tsv --output_file=v.jsonl "
        "--vocab_file=vocab.txt --bert_config_file=config.json "
        "--init_checkpoint=none",
        "none: no such checkpoint; ",
    ),
    ("fill_mask --init_checkpoint=none", "none: no such checkpoint; "),
    (PRETRAINING, "train.tsv: is text, not TFRecords; make TFRecords of"),
    ("predict", "missing --model; "),
    ("predict --model=none/", "none: no such checkpoint; "),
    ("predict --model=model", "model: no checkpoints in this folder; "),
    ("serve --model=none", "none/: no model; expected an existing folder"),
    ("serve --model=model", "model/: no model; "),
    ("report --run=none", "none: no such folder; expected a run"),
    ("report --run=model", "model: no metrics.jsonl and no results of an eval"),
    (
        "report --run=curves --output_file=none/a.html",
        "--output_file='none/a.html'; ex",
    ),
    (
        "create_pretraining_data --input_file=train.tsv --vocab_file=vocab.txt "
        "--output_file=out -- --project=x",
        "'--project=x' after -- is for Beam; pass --runner too",
    ),
    ("doctor", "no file to check; pass --input_file, --vocab_file, "),
    ("doctor --output_dir=none", "none: no such folder; "),
    ("export_hub --export_path=hub", "no --model_checkpoint_path"),
    *(
        (command, f"{command.rpartition('=')[2]}: cannot be written: {cause}")
        for path, cause in [
            ("train.tsv/out", "Not a directory"),
            (f"model/{'a' * 256}", "File name too long"),
        ]
        for command in [
            f"{CLASSIFIER} --init_checkpoint=none --export_dir={path}",
            f"{CLASSIFIER} --init_checkpoint=none --do_predict "
            f"--predict_file=x --glue_dir={path}",
            f"run_swag --do_predict --predict_file=x --output_dir={path}",
            f"convert_checkpoint --to=google --input=none --output={path}",
            "create_pretraining_data --input_file=train.tsv "
            f"--vocab_file=vocab.txt --output_file={path}",
        ]
    ),
    (
        f"create_vocab --input_file=train.tsv --output_file={'a' * 256}",
        f"{'a' * 256}: cannot be written: File name too long, ",
    ),
]


def test_mistakes_are_reported_before_tensorflow_is_imported(folder):
    lines = errors_of([command for command, _ in MISTAKES], folder)
    for line, (_, message) in zip(lines, MISTAKES, strict=True):
        assert line.startswith(f"error: {message}")
