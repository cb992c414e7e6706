"""Entry point of scripts: one-line error messages and exit codes."""

import os
import select
import sys
from collections.abc import Callable

from bert.common import packages, storage, tensorflow_log
from bert.common.progress import say


def run(
    main: Callable[[list[str]], int | None],
    argv: list[str],
    leave: Callable[[int], int] = int,
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

    Returns:
        the exit code: 2 after a `UserError`, after an error about a file, or
        if a package that the script needs is missing; 75 if shared storage
        does not answer, 130 after Ctrl-C.
    """
    # Else TensorFlow's notes on missing devices would bury our messages.
    tensorflow_log.hold_back_import(lambda: say("loading TensorFlow ..."))
    try:
        code = main(argv) or 0
        if sys.stdout:
            sys.stdout.flush()
    except KeyboardInterrupt:
        code = 130
    except SystemExit as end:
        code = end.code or 0
    except Exception as error:
        error = (
            storage.as_storage_error(error)
            or storage.as_user_error(error)
            or error
        )
        code = getattr(error, "exit_code", None)
        missing = isinstance(error, ModuleNotFoundError) and error.name
        if missing and missing.partition(".")[0] != "bert":
            error, code = packages.describe_missing(missing), 2
        if isinstance(error, BrokenPipeError):
            output = select.poll()
            output.register(1, 0)  # for errors only
            if output.poll(0):  # its reader has gone, as that of `| head`
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                return leave(0)
        if code is None:
            raise
        say(f"error: {error}")
        # Before the error's objects are freed, for which TensorFlow would wait.
        return leave(code)
    return leave(code)
