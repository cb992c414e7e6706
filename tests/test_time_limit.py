"""A test that hangs ends, and shows where each thread waits."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
HANGING = """
import threading

def wait_in_thread(event):
    event.wait()

def test_that_hangs():
    event = threading.Event()
    threading.Thread(target=wait_in_thread, args=[event], daemon=True).start()
    event.wait()
"""


def test_every_test_has_a_limit(pytestconfig):
    printed = float(pytestconfig.getini("faulthandler_timeout"))
    ended = float(pytestconfig.getini("timeout"))
    assert 60 < printed < ended


@pytest.mark.parametrize("workers", [0, 1])
def test_a_hang_ends_with_the_stacks_of_all_threads(tmp_path, workers):
    test = tmp_path / "test_hang.py"
    test.write_text(HANGING)
    limits = ["-o", "faulthandler_timeout=1", "-o", "timeout=2"]
    settings = ["-c", ROOT / "pyproject.toml", "-n", str(workers)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", test, *settings, *limits],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "in test_that_hangs" in done.stderr
    assert "in wait_in_thread" in done.stderr
