"""Ends of scripts that are neither an error nor a success of their own."""

import pathlib
import subprocess
import sys

import pytest

from bert.common import main

ROOT = pathlib.Path(__file__).parents[2]
PRINTING = """
import sys
from bert.common import main

def run(argv):
    for number in range(100_000):
        print(number)

sys.exit(main.run(run, []))
"""


def test_a_reader_that_has_read_enough_is_no_error():
    """As `script | head -1`."""
    process = subprocess.Popen(
        [sys.executable, "-c", PRINTING],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout.readline() == b"0\n"
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == (b"", 0)
    process.stderr.close()


def test_another_pipe_that_breaks_is_an_error():
    def fail(argv):
        raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(BrokenPipeError):
        main.run(fail, [])
