"""Drawing of the page of a run, also at the end of a script."""

import os
from typing import Any

from bert.common import extras, flags, outputs
from bert.common.errors import StorageError, UserError
from bert.common.progress import say
from bert.reports import run_files

REPORT = "report.html"


def draw(folder: str, path: str) -> None:
    """Draws the page of a run.

    Args:
        folder: its output_dir.
        path: the page.

    Raises:
        UserError: the folder is not that of a run, a file is damaged, the page
            cannot be written, or packages are missing.
    """
    run = run_files.read_run(folder)
    outputs.check_file(path, "output_file")
    extras.check("report", "jinja2", "matplotlib")

    say(f"drawing the report to {path} ...")
    from bert.reports import page  # loads matplotlib, which takes seconds

    page.write(run, path)


def draw_trained(settings: Any, is_chief: bool) -> None:
    """Draws the report of the run that a script has trained, if it may.

    Args:
        settings: of the script.
        is_chief: false for all workers but the first: a run has one page.
    """
    # The training is done, so an error here is told and not raised.
    values = flags.as_dict(settings)
    if is_chief and values["do_train"] and values["report"]:
        folder = values["output_dir"]
        try:
            draw(folder, os.path.join(folder, REPORT))
        except (UserError, StorageError) as error:
            say(f"{REPORT} is not written: {error}")
