"""The Makefile takes the newest Python that works, or says that none does."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[1]


@pytest.fixture
def plan(tmp_path):
    """(Python -> its exit code, words) -> what make would do, and errors."""

    def run(pythons, *words):
        for name, code in pythons.items():
            path = tmp_path / name
            path.write_text(f"#!/bin/sh\nexit {code}\n")
            path.chmod(0o755)
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHON", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
        }
        return subprocess.run(
            [shutil.which("make"), "-n", *words],
            cwd=ROOT,
            env={**environment, "PATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )

    return run


# Not below `tmp_path`: make knows no target with a space in its name.
NEW_VENV = ("VENV=missing", "missing/run")


@pytest.mark.parametrize(
    ("pythons", "taken"),
    [
        # A shim that has no such version, or a Python without ensurepip.
        ({"python3.13": 127, "python3.12": 1, "python3.11": 0}, "python3.11"),
        ({"python3.13": 0, "python3.12": 0, "python3.10": 0}, "python3.13"),
    ],
)
def test_the_newest_that_works_is_taken(plan, pythons, taken):
    done = plan(pythons, *NEW_VENV)
    assert done.stdout.startswith(f"{taken} -m venv missing\n")


def test_the_quickstart_predicts_without_tensorflow(plan):
    done = plan({"python3.13": 0}, *NEW_VENV)
    assert "-r requirements/openvino.txt" in done.stdout
    assert "int8" not in done.stdout


def test_without_any_one_line_tells_what_to_install(plan):
    done = plan({"python3.13": 1, "python3.10": 0}, *NEW_VENV)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "install python3.13 and python3.13-venv" in done.stderr


def test_emulation_without_its_tool_tells_what_to_install(tmp_path):
    done = subprocess.run(
        ["/bin/sh", ROOT / "tests/emulated_python.sh", "arm64", "none"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "make arm64 needs mmdebstrap: apt install mmdebstrap "
        "debian-archive-keyring\n"
    )
