"""Writes the report of a run; also called at the end of training."""

import os

from bert.common import errors, flags, outputs
from bert.common.errors import StorageError, UserError
from bert.common.flags import BaseSettings
from bert.common.progress import log
from bert.reports import run_files

REPORT = "report.html"


def draw(folder: str, path: str) -> None:
    """Writes the report of a run.

    Args:
        folder: str. Output folder of the run.
        path: str. HTML file to write.

    Raises:
        UserError: the folder is not a run, a file is damaged, the report
            cannot be written, or packages are missing.
    """
    run = run_files.read_run(folder)
    outputs.check_file(path, "output_file")
    errors.check_packages("report", "jinja2", "matplotlib")

    log(f"drawing the report to {path} ...")
    from bert.reports import page  # loads matplotlib, which takes seconds

    page.write(run, path)


def draw_trained(settings: BaseSettings, is_chief: bool) -> None:
    """Writes the report at the end of training, unless flags disable it.

    Args:
        settings: settings of the script.
        is_chief: bool. Whether this is the only or first worker. A run has one
            report.
    """
    # The training is done, so an error is logged and not raised.
    values = flags.as_dict(settings)
    if is_chief and values["do_train"] and values["report"]:
        folder = values["output_dir"]
        try:
            draw(folder, os.path.join(folder, REPORT))
        except (UserError, StorageError) as error:
            log(f"{REPORT} is not written: {error}")
