"""Writes the report of a run as one HTML file.

    python report.py --run=quickstart/run

The page has curves with baselines, statistics of the data, errors, settings
and the command. It needs no internet access and no JavaScript. Training
scripts write it at their end, unless --noreport is given.
"""

import dataclasses
import os
import sys

from bert.common import command_line
from bert.common import main as common_main
from bert.common.flags import BaseSettings, flag
from bert.reports import drawing


@dataclasses.dataclass(frozen=True)
class Settings(BaseSettings):
    """Settings of report.py."""

    run: str = flag(None, "Folder of the run.", required=True, path=True)
    output_file: str | None = flag(
        None,
        "The page. Default: report.html in the folder of the run.",
        path=True,
    )


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = command_line.parse(argv, Settings, __doc__)
    folder = settings.run
    path = settings.output_file or os.path.join(folder, drawing.REPORT)
    drawing.draw(folder, path)
    print(f"wrote {path}")


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
