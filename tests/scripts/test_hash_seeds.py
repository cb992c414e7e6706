"""The order of a set, which each process draws anew, is in no file or hash."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from tests.helpers import classifier_files

ROOT = pathlib.Path(__file__).parents[2]
TRAIN = """
import sys
import run_classifier
from bert.common import main
sys.exit(main.run(run_classifier.main, sys.argv))
"""


def outputs_of(commands):
    """Runs a command with each of two hash seeds; returns what they print."""
    processes = [
        subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        )
        for seed, command in enumerate(commands, 1)
    ]
    outputs = [x.communicate()[0] for x in processes]
    assert [x.returncode for x in processes] == [0, 0]
    return outputs


def test_identities(tmp_path):
    """A killed command continues, and takes the stored outputs of a teacher."""
    classifier_files.write_networks(
        tmp_path, classifier_files.classifier_of(tmp_path)
    )
    command = ["-m", "tests.helpers.identities", str(tmp_path)]
    one, other = map(json.loads, outputs_of([command, command]))
    assert one == other
    assert len(one["embeddings"]["record"]["model"]) == 64


@pytest.mark.slow
def test_files_of_a_run(tmp_path):
    """The JSON files of a run and its export have the same keys in order."""
    classifier_files.write_model(tmp_path)
    named = classifier_files.write_table(tmp_path, 31)
    del named["predict_file"]
    words = [f"--{name}={value}" for name, value in named.items()]
    words += ["--do_train", "--do_eval", "--noreport", "--eval_fraction=0.2"]
    words += ["--calibrate", "--class_weights=balanced", "--num_train_epochs=1"]
    folders = [tmp_path / "1" / "run", tmp_path / "2" / "run"]
    outputs_of(
        ["-c", TRAIN, *words, f"--output_dir={x}", f"--export_dir={x}_export"]
        for x in folders
    )

    def texts(folder):
        # Without times, and digits of losses.
        return {
            str(path.relative_to(folder)): re.sub(r"\d+", "0", path.read_text())
            for path in sorted(folder.rglob("*.json*"))
        }

    one, other = (texts(x.parent) for x in folders)
    names = " ".join(one)
    assert "task.json" in names and "model.ckpt-" in names
    assert one == {k: x.replace("/2/", "/0/") for k, x in other.items()}
