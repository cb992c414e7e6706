"""Entry point of scripts: one-line error messages and exit codes."""

import errno
import os
import select
import sys
from collections.abc import Callable
from typing import Any

from bert.common import packages, storage, tensorflow_log
from bert.common.errors import UserError
from bert.common.progress import drop_writes, say

_STREAMS = {"stdin": "input", "stdout": "output", "stderr": "error"}


def run(
    main: Callable[[list[str]], int | None],
    argv: list[str],
    leave: Callable[[Any], int] = int,
    explain: Callable[[Exception], Exception] = lambda error: error,
) -> int:
    """Runs a script's `main`.

    Prints an error that has an `exit_code`, such as `UserError`, or that is
    about a file, on one line.

    Args:
        main: function of the command line; returns an exit code, or None
            for 0.
        argv: the command line, program name first.
        leave: called with the exit code while the error that `main` raised
            is alive; returns the code, or ends the process.
        explain: maps an error that `main` raised to one that says more.

    Returns:
        the exit code: 2 after a `UserError`, after an error about a file, or
        if a package that the script needs is missing; 75 if shared storage
        does not answer, 130 after Ctrl-C.
    """
    closed = _open_closed()
    tensorflow_log.before_import(
        "tensorflow", lambda: say("loading TensorFlow ...")
    )
    try:
        try:
            code = main(argv) or 0
        except SystemExit as end:
            code = end.code or 0
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        error = explain(error)

        # The cause is not the operation, but the stream.
        if closed and getattr(error, "errno", None) == errno.EBADF:
            error = UserError(f"standard {' and '.join(closed)} closed")
        error = (
            storage.as_storage_error(error)
            or storage.as_user_error(error)
            or error
        )

        # What has no code is a bug, and keeps its traceback.
        code = getattr(error, "exit_code", None)
        missing = isinstance(error, ModuleNotFoundError) and error.name
        if missing and missing.partition(".")[0] != "bert":
            error, code = packages.describe_missing(missing), 2

        # Only a reader of the output may go; other pipes should not break.
        if isinstance(error, BrokenPipeError):
            output = select.poll()
            output.register(1, 0)  # for errors only
            if output.poll(0):  # its reader has gone, as that of `| head`
                drop_writes(1)
                return leave(0)
        if code is None:
            raise
        try:
            sys.stdout.flush()
        except OSError:  # at its end Python would fail again, with its own code
            drop_writes(1)
        for mistake in (error, *getattr(error, "others", ())):
            say(f"error: {mistake}")
        # Before the error's objects are freed, for which TensorFlow would wait.
        return leave(code)
    return leave(code)


def _open_closed() -> list[str]:
    """Opens the standard streams that are closed, and returns their names.

    Else the next file would take the number of one, and what is printed would
    end in that file. To read the input or to print is still an error; what is
    said gets lost.
    """
    closed = [name for name in _STREAMS if getattr(sys, name) is None]
    for name in closed:  # each gets the lowest number that is free: its own
        access = os.O_RDONLY if name == "stdout" else os.O_WRONLY
        handle = os.open(os.devnull, access)
        os.set_inheritable(handle, True)
        setattr(sys, name, os.fdopen(handle, "r" if name == "stdin" else "w"))
    return [_STREAMS[name] for name in closed]
