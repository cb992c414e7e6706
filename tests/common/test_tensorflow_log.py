"""What TensorFlow writes while it loads; a package of that name stands in."""

import subprocess
import sys

import pytest

NOISY = """
import gc, os
assert not gc.isenabled()
assert os.environ["TF_ENABLE_ONEDNN_OPTS"] == os.environ["EXPECTED_ONEDNN"]
os.write(2, b"noise of the import\\n")
class config:
    def list_physical_devices():
        os.write(2, b"noise of the driver\\n")
"""
PROGRAM = """
import gc, os, sys
from bert.common import tensorflow_log
class Tracer:
    asked = []
    def find_spec(name, path, target=None):
        Tracer.asked.append(name)
sys.meta_path.insert(0, Tracer)
sys.stderr.write("before\\n")
starts = lambda: sys.stderr.write("starts\\n")
tensorflow_log.before_import("tensorflow", starts)
try:
    import tensorflow
    assert tensorflow.__spec__.loader and tensorflow.config
    import tensorflow
except KeyError:
    os.write(2, b"failed\\n")
assert gc.isenabled() and gc.get_freeze_count()
assert "tensorflow" in Tracer.asked
os.write(2, b"after\\n")
"""


def run(tmp_path, source, **environment):
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text(source)
    path = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, '.']\n"
    command = [sys.executable, "-S", "-c", path + PROGRAM]
    environment = {"EXPECTED_ONEDNN": "1", **environment}
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment
    )
    return done.stderr.splitlines()


@pytest.mark.parametrize(
    "environment", [{}, {"TF_ENABLE_ONEDNN_OPTS": "0", "EXPECTED_ONEDNN": "0"}]
)
def test_the_noise_of_an_import_is_not_shown(tmp_path, environment):
    """And oneDNN is on, unless the user has chosen."""
    lines = run(tmp_path, NOISY, **environment)
    assert lines == ["before", "starts", "after"]


@pytest.mark.parametrize("where", ["import", "driver"])
def test_the_noise_is_shown_if_the_import_fails(tmp_path, where):
    source = NOISY.replace(
        f'of the {where}\\n")', f'of the {where}\\n"); {{}}["x"]'
    )
    lines = run(tmp_path, source)
    noise = ["noise of the import", "noise of the driver"]
    shown = noise if where == "driver" else noise[:1]
    assert lines == ["before", "starts", *shown, "failed", "after"]


def test_a_missing_package_is_missing():
    command = [sys.executable, "-S", "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "No module named 'tensorflow'" in done.stderr
