"""A healthy run prints lines of ours alone, from the first import on."""

import pathlib
import subprocess
import sys

import pytest

from tests.helpers import classifier_files

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.slow
def test_an_export_is_asked_without_a_line_of_tensorflow(tmp_path):
    """Of all commands it loads most: TensorFlow, Keras, TensorFlow Text."""
    export = classifier_files.write_export(tmp_path)
    done = subprocess.run(
        [sys.executable, ROOT / "predict.py", "--trust_model"]
        + [f"--model={export}"],
        input="the cat sees a bird\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("\n") == 1
    first, second, third = done.stderr.splitlines()
    assert first == "loading TensorFlow ..."
    assert second == f"loading {export} ..."
    assert third.startswith("device: CPU, ")
