"""The order of a set, which each process draws anew, is in no file or hash."""

import json
import os
import pathlib
import subprocess
import sys

from tests.helpers import classifier_files

ROOT = pathlib.Path(__file__).parents[2]


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
