"""Folders that are written once in a session."""

import fcntl
import os
import pathlib
from collections.abc import Callable

import pytest


def written(
    factory: pytest.TempPathFactory,
    name: str,
    write: Callable[[pathlib.Path], object],
) -> pathlib.Path:
    """The folder of a name, shared by the processes that share the tests.

    Args:
        factory: `tmp_path_factory`.
        name: of the folder.
        write: writes the files into it.
    """
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / name
    with open(base / f"{name}.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            folder.mkdir()
            write(folder)
    return folder
