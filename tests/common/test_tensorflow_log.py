"""The import of TensorFlow; a package of that name stands in."""

import subprocess
import sys

import pytest

NOISY = """
import gc, os
assert gc.isenabled() == ("QUIET" not in os.environ)
assert os.environ["TF_ENABLE_ONEDNN_OPTS"] == os.environ["EXPECTED_ONEDNN"]
os.write(2, b"noise of the import\\n")
class config:
    def list_physical_devices():
        os.write(2, b"noise of the driver\\n")
"""
PROGRAM = """
import gc, os, sys
from bert.common import tensorflow_log
os.environ["QUIET"] = ""
class Tracer:
    asked = []
    def find_spec(name, path, target=None):
        Tracer.asked.append(name)
sys.meta_path.insert(0, Tracer)
sys.stderr.write("before\\n")
tensorflow_log.hold_back_import(lambda: sys.stderr.write("starts\\n"))
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
IMPORT = """
import gc, logging, os, sys
def state():
    file, loggers = os.fstat(2), logging.root.manager.loggerDict
    return [
        *([*sys.meta_path], [*os.environ.items()]),
        *(file.st_dev, file.st_ino, gc.isenabled(), gc.get_freeze_count()),
        *([*loggers], logging.root.level, [*logging.root.handlers]),
    ]
finders, environment, *others = state()
import bert
new_finders, new_environment, *new_others = state()
assert new_finders[1:] == finders, new_finders
expected = [*environment, ("TF_ENABLE_ONEDNN_OPTS", "1")]
assert new_environment == expected, new_environment
assert new_others == others, new_others
import tensorflow
_, new_environment, *new_others = state()
assert new_environment == expected, new_environment
assert new_others == others, new_others
"""


def run(tmp_path, source, program=PROGRAM, **environment):
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text(source)
    path = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, '.']\n"
    command = [sys.executable, "-S", "-c", path + program]
    environment = {"EXPECTED_ONEDNN": "1", **environment}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


def test_import_bert_changes_nothing_else(tmp_path):
    """Except a finder, which registers its classes with Keras, and oneDNN."""
    assert run(tmp_path, NOISY, IMPORT) == ["noise of the import"]


@pytest.mark.parametrize(
    "environment", [{}, {"TF_ENABLE_ONEDNN_OPTS": "0", "EXPECTED_ONEDNN": "0"}]
)
def test_the_noise_of_an_import_is_not_shown(tmp_path, environment):
    """oneDNN is used, unless the user has turned it off."""
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


@pytest.mark.long
def test_tensorflow_itself_loads_quietly():
    hold_back = "tensorflow_log.hold_back_import()\nimport tensorflow"
    code = f"from bert.common import tensorflow_log\n{hold_back}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
