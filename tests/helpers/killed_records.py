"""Runs of scripts that are killed at a certain call."""

import importlib
import os
import pydoc
import signal

MODULES = ("create_pretraining_data",)  # imports all that a run needs


def create(argv: list[str], partition_bytes: int) -> int:
    """Runs create_pretraining_data in this process; returns its exit code."""
    import create_pretraining_data
    from bert.common import main as main_lib
    from bert.data.corpus import documents

    documents.PARTITION_BYTES = partition_bytes
    argv = ["create_pretraining_data", *argv]
    return main_lib.run(create_pretraining_data.main, argv)


def create_and_die(
    argv: list[str], function: str, number: int, partition_bytes: int
) -> int:
    """Runs create_pretraining_data up to a call that kills the process.

    Args:
        argv: flags.
        function: its name, with module and class.
        number: the process dies at this call of it, from 1.
        partition_bytes: text of a partition.
    """
    die_at(function, number)
    return create(argv, partition_bytes)


def run_and_die(
    script: str, argv: list[str], function: str, number: int
) -> int:
    """Runs another script up to a call that kills the process.

    Args:
        script: its name.
        argv, function, number: see `create_and_die`.
    """
    from bert.common import main as main_lib

    die_at(function, number)
    main = importlib.import_module(script).main
    return main_lib.run(main, [script, *argv])


def die_at(function: str, number: int) -> None:
    """Makes a call of a function kill the process; see `create_and_die`."""
    owner, _, name = function.rpartition(".")
    owner = pydoc.locate(owner)
    original, calls = getattr(owner, name), []

    def call(*args, **named):
        calls.append(args)
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **named)

    setattr(owner, name, call)
