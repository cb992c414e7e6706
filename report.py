"""Draws the report of a run, or of several side by side, as one HTML file.

    python report.py run
    python report.py run_a run_b --output_file=both.html
    python report.py run --watch

The page has curves with their references, statistics of the data, errors,
settings and the command. It needs no network and no scripts.
Scripts that train draw it at their end, unless --noreport is given; --watch
draws it again whenever the files of a run change.
"""

import dataclasses
import os
import sys

from bert.common import flags
from bert.common import main as common_main
from bert.common.flags import flag
from bert.reports import drawing


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of report.py."""

    runs: str | None = flag(
        None,
        "Folders of the runs: arguments without a flag, as above, or separated "
        "by commas.",
        required=True,
        path=True,
        positional=True,
    )
    output_file: str | None = flag(
        None,
        "The page. Default: report.html in the folder of the run; of several "
        "runs, in the current folder.",
        path=True,
    )
    watch: bool = flag(
        False, "Draw the page again whenever files of the runs change."
    )


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    folders = settings.runs.split(",")
    where = folders[0] if len(folders) == 1 else "."
    path = settings.output_file or os.path.join(where, drawing.REPORT)
    if settings.watch:
        drawing.watch(folders, path)
    drawing.draw(folders, path)
    print(f"wrote {path}")


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
