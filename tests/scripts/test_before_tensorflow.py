"""Mistakes that are reported before TensorFlow is imported."""

import pathlib
import subprocess
import sys

import pytest

from modeling.config import BertConfig

ROOT = pathlib.Path(__file__).parents[2]
# Instead of waiting seconds for it, an import of TensorFlow fails.
PROGRAM = """
import importlib, sys
sys.modules["tensorflow"] = None
from common import main
script = importlib.import_module(sys.argv[1])
sys.exit(main.run(script.main, sys.argv[1:]))
"""


@pytest.fixture
def folder(tmp_path):
    """Files that every command here has."""
    config = BertConfig(vocab_size=7)
    (tmp_path / "config.json").write_text(config.to_json())
    tokens = "[PAD] [UNK] [CLS] [SEP] [MASK] a b".split()
    (tmp_path / "vocab.txt").write_text("\n".join(tokens) + "\n")
    (tmp_path / "train.tsv").write_text("text\tlabel\na\t0\nb\t1\n")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "saved_model.pb").touch()
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


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"{CLASSIFIER} --use_tpu --tpu_name=", "--tpu_name is empty; "),
        (f"{PRETRAINING} --use_tpu --tpu_name=", "--tpu_name is empty; "),
        (f"{CLASSIFIER} --init_checkpoint=none", "none: no such checkpoint; "),
        (f"{PRETRAINING} --init_checkpoint=none", "none: no such checkpoint; "),
        (
            "extract_features --input_file=train.tsv --output_file=v.jsonl "
            "--vocab_file=vocab.txt --bert_config_file=config.json "
            "--init_checkpoint=none",
            "none: no such checkpoint; ",
        ),
        ("fill_mask --init_checkpoint=none", "none: no such checkpoint; "),
        ("predict", "missing --model; "),
        ("predict --model=none", "none: no saved_model.pb; "),
        ("predict --model=model", "model: not among the exports of this user"),
        ("export_hub --export_path=hub", "no --model_checkpoint_path"),
    ],
)
def test_a_mistake_is_reported_before_tensorflow_is_imported(
    folder, command, message
):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command.split()],
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "HOME": str(folder)},
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {message}"), line
    assert done.returncode == 2
