"""Ends of scripts that are neither an error nor a success of their own."""

import pathlib
import subprocess
import sys

import pytest

from bert.common import main
from bert.common.errors import StorageError, UserError

ROOT = pathlib.Path(__file__).parents[2]
PRINTING = """
import sys
from bert.common import main
from bert.common.errors import StorageError, UserError

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


FIRST, SECOND = UserError("one"), UserError("two")
FIRST.others = (SECOND,)


@pytest.mark.parametrize(
    ("end", "code", "lines"),
    [
        (None, 0, ""),
        (7, 7, ""),
        (SystemExit(), 0, ""),
        (SystemExit(75), 75, ""),
        (KeyboardInterrupt(), 130, ""),
        (SECOND, 2, "error: two\n"),
        (FIRST, 2, "error: one\nerror: two\n"),
        (StorageError("503"), 75, "error: 503; run the same command again\n"),
        (FileNotFoundError(2, "None", "a"), 2, "error: a: cannot be read or w"),
        (BrokenPipeError(32, "Broken pipe"), None, ""),
        (ValueError("a mistake of ours"), None, ""),
    ],
    ids=str,
)
def test_each_end_has_its_exit_code(capsys, end, code, lines):
    def call(argv):
        if isinstance(end, BaseException):
            raise end
        return end

    if code is None:
        with pytest.raises(type(end)):
            main.run(call, [])
        return
    assert main.run(call, []) == code
    error = capsys.readouterr().err
    assert error.startswith(lines)
    assert error.count("\n") == lines.count("\n") + ("or w" in lines)


READING = """
import os, sys
from bert.common import errors, main, tensorflow_log
from bert.common.progress import log

def run(argv):
    log("starts")
    assert os.open(os.devnull, os.O_RDONLY) > 2
    with tensorflow_log.held_back():
        print(sys.stdin.buffer.read1(9))
    if "--help" in argv:
        sys.exit()
    if argv:
        raise errors.UserError("a mistake")

sys.exit(main.run(run, sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("streams", "code", "out", "err"),
    [
        ("<&-", 2, "", "starts\nerror: standard input closed\n"),
        (">&-", 2, "", "starts\nerror: standard output closed\n"),
        ("--help >&-", 2, "", "starts\nerror: standard output closed\n"),
        ("<&- >&-", 2, "", "starts\nerror: standard input and output closed\n"),
        ("2>&-", 0, "b'a'\n", ""),
        ("mistake 2>&-", 2, "b'a'\n", ""),
        ("2>/dev/full", 0, "b'a'\n", ""),
        ("mistake 2>/dev/full", 2, "b'a'\n", ""),
        (
            ">/dev/full",
            2,
            "",
            "starts\nerror: cannot be read or written: No space",
        ),
        ("<&- >&- 2>&-", 2, "", ""),
    ],
)
def test_streams_that_are_closed_or_full_end_in_one_line(
    streams, code, out, err
):
    shell = f'printf a | {{ "$0" -c "$1" {streams}; }}'
    found = subprocess.run(
        ["sh", "-c", shell, sys.executable, READING],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert (found.returncode, found.stdout) == (code, out)
    assert found.stderr.startswith(err)
    assert found.stderr.count("\n") == err.rstrip("\n").count("\n") + bool(err)
