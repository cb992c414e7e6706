"""The report of a run, written by another process while it trains."""

import importlib.util
import os
import pathlib
import subprocess
import sys

from common import storage
from common.progress import say


def start(folder: str) -> None:
    """Starts the process that keeps `report.html` of a run up to date.

    It ends after this process, whose end it sees by that of a pipe.

    Args:
        folder: output_dir of the run; it need not exist yet.
    """
    if not all(map(importlib.util.find_spec, ("jinja2", "matplotlib"))):
        say(
            "report.html is not written; pip install -r requirements-report.txt"
        )
        return
    ours, theirs = os.pipe()
    files = storage.find(folder, "*")
    newest = max((storage.version(file)[1] for file in files), default=0)
    # `bert.` in front, if the project is installed.
    module = f"{__name__.removesuffix('tasks.live_report')}reports.watch"
    words = storage.absolute(folder), str(newest), os.getcwd()
    subprocess.Popen(
        [sys.executable, "-m", module, *words],
        cwd=pathlib.Path(__file__).parents[__name__.count(".")],
        stdin=ours,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # report.py shows what is wrong
        start_new_session=True,  # Ctrl-C is for the run
    )
    os.close(ours)
    assert theirs  # open until this process ends
