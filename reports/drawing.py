"""Drawing of a page of runs: at the end of a script, and while they train."""

import os
import time
from typing import Any

from bert.common import extras, flags, outputs, storage
from bert.common.errors import StorageError, UserError
from bert.common.progress import say
from bert.reports import run_files

REPORT = "report.html"
# Seconds between two looks at the runs; a store charges for each.
_SECONDS, _SECONDS_REMOTE = 2.0, 30.0


def draw(folders: list[str], path: str) -> None:
    """Draws a page of runs.

    Args:
        folders: their output_dirs.
        path: the page.

    Raises:
        UserError: a folder is not that of a run, a file is damaged, the page
            cannot be written, or packages are missing.
    """
    runs = run_files.read_runs(folders)
    outputs.check_file(path, "output_file")
    extras.check("report", "jinja2", "matplotlib")
    say(f"drawing the report to {path} ...")
    from bert.reports import page  # loads matplotlib, which takes seconds

    page.write(runs, path)


def draw_trained(settings: Any) -> None:
    """Draws the report of the run that a script has trained, if it may.

    Args:
        settings: of the script; of other workers than the first, `report` is
            not set.
    """
    values = flags.as_dict(settings)
    if values["do_train"] and values["report"]:
        folder = values["output_dir"]
        try:
            draw([folder], os.path.join(folder, REPORT))
        except (UserError, StorageError) as error:
            say(f"{REPORT} is not written: {error}")


def watch(folders: list[str], path: str) -> None:
    """Draws a page of runs whenever their files change, until Ctrl-C.

    Args:
        folders: their output_dirs, which need not exist yet.
        path: the page.
    """
    is_slow = any(map(storage.is_remote, folders))
    drawn = None
    while True:
        try:
            times = run_files.times(folders)
            if times != drawn:
                drawn = times
                draw(folders, path)
        except (UserError, StorageError) as error:
            say(str(error))
        time.sleep(_SECONDS_REMOTE if is_slow else _SECONDS)
