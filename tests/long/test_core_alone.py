"""The scripts where none of the packages of the add-ons is installed."""

import os
import pathlib
import subprocess
import sys

import pytest

from tests.helpers import classifier_files

ROOT = pathlib.Path(__file__).parents[2]
# What requirements/ adds to requirements.txt for users.
ADDED = (
    *(
        "matplotlib",
        "jinja2",
        "gradio",
        "flask",
        "waitress",
        "prometheus_client",
    ),
    *("apache_beam", "pyarrow", "tf2onnx", "onnx", "onnxruntime"),
    *("openvino", "nncf"),
)
HIDE = f"""
from importlib.machinery import PathFinder

find = PathFinder.find_spec

def find_spec(name, path=None, target=None):
    if name.partition(".")[0] in {ADDED!r}:
        return None
    return find(name, path, target)

PathFinder.find_spec = staticmethod(find_spec)
"""
pytestmark = pytest.mark.long


@pytest.fixture
def run(tmp_path):
    """Runs a script in a process that does not find these packages."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(HIDE)
    paths = {"PYTHONPATH": str(tmp_path / "site"), "CUDA_VISIBLE_DEVICES": "-1"}

    def run(script, *words, code=0, stdin="", **named):
        done = subprocess.run(
            [sys.executable, ROOT / f"{script}.py", *words]
            + [f"--{name}={value}" for name, value in named.items()],
            cwd=tmp_path,
            env={**os.environ, **paths},
            input=stdin,
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    return run


def test_text_becomes_a_served_model(run, tmp_path):
    classifier_files.write_model(tmp_path)
    classifier_files.write_task(tmp_path)
    lines = ["The cat sees the dog.", "A bird finds the tree."] * 9
    (tmp_path / "raw.txt").write_text("\n\n".join(lines))
    named = {"input_file": "raw.txt", "output_file": "corpus.txt"}
    run("prepare_corpus", "--document_boundary=blank_line", **named)
    lengths = {"max_seq_length": 13, "max_predictions_per_seq": 2}
    run(
        "create_pretraining_data",
        input_file="corpus.txt",
        vocab_file="vocab.txt",
        output_file="a.tfrecord",
        num_processes=1,
        **lengths,
    )
    shown = run(
        "run_pretraining",
        *("--do_train", "--do_eval"),
        input_file="a.tfrecord",
        bert_config_file="bert_config.json",
        output_dir="run",
        num_train_steps=2,
        num_warmup_steps=1,
        train_batch_size=3,
    )
    assert "report.html is not written: " in shown
    run("fill_mask", init_checkpoint="run", stdin="the [MASK] sees")
    named = classifier_files.flags_of(tmp_path)
    named |= {"output_dir": "labels", "export_dir": "labels_export"}
    run("run_classifier", "--do_train", "--do_eval", "--do_predict", **named)
    answer = run("predict", model="labels_export", stdin="the cat\ta dog")
    assert '"label"' in answer
    run("doctor", output_dir="run", input_file="a.tfrecord")
    for script, extra in (("report", "report"), ("demo", "demo")):
        word = {"report": "--run=run", "demo": "--model=run"}[script]
        assert f"requirements/{extra}.txt" in run(script, word, code=2)
    assert "requirements/serve.txt" in run(
        "serve", model="labels_export", code=2
    )
