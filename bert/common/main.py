"""Entry point of scripts: one-line error messages and exit codes."""

import errno
import os
import select
import sys
from collections.abc import Callable
from typing import Any

from bert.common import packages, storage, tensorflow_log
from bert.common.errors import UserError
from bert.common.progress import drop_writes, log

_STREAMS = {"stdin": "input", "stdout": "output", "stderr": "error"}


def run(
    main: Callable[[list[str]], int | None],
    argv: list[str],
    leave: Callable[[Any], int] = int,
    explain: Callable[[Exception], Exception] = lambda error: error,
) -> int:
    """Runs a script's `main`.

    Errors about a file, and errors with an `exit_code` such as `UserError`,
    are printed on one line.

    Args:
        main: callable. Takes the command line; returns an exit code, or None
            for 0.
        argv: list of str. The command line, program name first.
        leave: callable. Called with the exit code while the error that `main`
            raised is still referenced. Returns the code or ends the process.
        explain: callable. Maps an error that `main` raised to an error with a
            better message.

    Returns:
        int. The exit code: 2 after a `UserError`, an error about a file or a
        missing package; 75 if shared storage does not answer; 130 after
        Ctrl-C.
    """
    closed = _open_closed()
    tensorflow_log.hold_back_import(lambda: log("loading TensorFlow ..."))
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

        # A closed standard stream is the cause, not the operation.
        if closed and getattr(error, "errno", None) == errno.EBADF:
            error = UserError(f"standard {' and '.join(closed)} closed")
        error = (
            storage.as_storage_error(error)
            or storage.as_user_error(error)
            or error
        )

        # An error without an exit code is a bug, so its traceback is shown.
        code = getattr(error, "exit_code", None)
        missing = isinstance(error, ModuleNotFoundError) and error.name
        if missing and missing.partition(".")[0] != "bert":
            error, code = packages.describe_missing(missing), 2

        # The reader of the output may end early; other pipes should not break.
        if isinstance(error, BrokenPipeError):
            output = select.poll()
            output.register(1, 0)  # for errors only
            if output.poll(0):  # its reader, such as `head`, has ended
                drop_writes(1)
                return leave(0)
        if code is None:
            raise
        try:
            sys.stdout.flush()
        except OSError:  # Python's own flush at exit would change the exit code
            drop_writes(1)
        for mistake in (error, *getattr(error, "others", ())):
            log(f"error: {mistake}")
        # Called before the error's objects are freed: TensorFlow would wait.
        return leave(code)
    return leave(code)


def _open_closed() -> list[str]:
    """Opens the standard streams that are closed, and returns their names.

    Otherwise the next opened file would get the descriptor of a standard
    stream, and output would be written into that file. Reading the input and
    printing still fail; log lines are dropped.
    """
    closed = [name for name in _STREAMS if getattr(sys, name) is None]
    for name in closed:  # each gets the lowest free descriptor: its own
        access = os.O_RDONLY if name == "stdout" else os.O_WRONLY
        handle = os.open(os.devnull, access)
        os.set_inheritable(handle, True)
        setattr(sys, name, os.fdopen(handle, "r" if name == "stdin" else "w"))
    return [_STREAMS[name] for name in closed]
