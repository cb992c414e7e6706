"""A script without its packages, or with the wrong Python."""

import pathlib
import subprocess
import sys
import types

import pytest

from bert.common import main, packages
from tests.helpers import flags_page

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("script", flags_page.SCRIPTS)
def test_a_script_without_packages_is_one_line(script):
    command = [sys.executable, "-S", "-B", ROOT / f"{script}.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert line.startswith(f"error: {sys.executable} has no package absl; ")
    assert line.endswith(f"pip install -r {ROOT}/requirements.txt")


@pytest.mark.parametrize(
    ("file", "version", "ends"),
    [
        (ROOT / "predict.py", (3, 10, 4), True),
        (ROOT / "predict.py", (3, 11, 0), False),
        (ROOT / "tests" / "other.py", (3, 10, 4), False),
    ],
    ids=["old", "supported", "another_program"],
)
def test_an_old_python_ends_a_script(monkeypatch, capsys, file, version, ends):
    script = types.SimpleNamespace(__file__=str(file))
    monkeypatch.setitem(sys.modules, "__main__", script)
    monkeypatch.setattr(sys, "version_info", version)
    if not ends:
        packages.check_of_script()
        return
    with pytest.raises(SystemExit, match="2"):
        packages.check_of_script()
    assert "is Python 3.10; expected 3.11 to 3.13" in capsys.readouterr().err


def test_a_package_that_is_missing_later_is_one_line(capsys):
    def fail(argv):
        import sentencex_that_is_missing  # noqa: F401

    assert main.run(fail, ["script"]) == 2
    assert "has no package sentencex_that_is_missing" in capsys.readouterr().err


def test_a_missing_module_of_ours_is_a_mistake_of_ours():
    def fail(argv):
        import bert.common.missing  # noqa: F401

    with pytest.raises(ModuleNotFoundError):
        main.run(fail, ["script"])
