"""How a script ends: mistakes on one line, and an exit code."""

import os
import sys
from collections.abc import Callable


def run(
    main: Callable[[list[str]], int | None],
    argv: list[str],
    leave: Callable[[int], int] = int,
) -> int:
    """Runs a script's `main`.

    An error that has an `exit_code`, such as `UserError`, is printed on one
    line.

    Args:
        main: takes the command line; returns an exit code, or None for 0.
        argv: the command line, program name first.
        leave: called with the exit code while what `main` raised is still
            alive; returns the code, or ends the process.

    Returns:
        the exit code: 2 after a user's mistake, 130 after Ctrl-C.
    """
    # TensorFlow's notes on devices that are not there would bury ours.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # oneDNN's matrix products are a quarter faster on any x86; TensorFlow
    # takes them by itself only where it finds AVX-512.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    try:
        code = main(argv) or 0
    except KeyboardInterrupt:
        code = 130
    except SystemExit as end:
        code = end.code or 0
    except Exception as error:
        code = getattr(error, "exit_code", None)
        if code is None:
            raise
        print(f"error: {error}", file=sys.stderr, flush=True)
        # Before what the error holds is freed: TensorFlow would wait there.
        return leave(code)
    return leave(code)
