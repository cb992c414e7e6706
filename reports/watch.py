"""Keeps the report of a run up to date while another process trains it.

    python -m reports.watch FOLDER NANOSECONDS

Files that were changed at this time or before are no news.

Standard input is a pipe that the run holds open: its end, however the run
ended, is the end of this process, after a last report.
"""

import os
import select
import sys

from common import storage
from common.errors import UserError
from reports import page, run_files

_SECONDS = 2.0  # between two looks at the folder


def main(argv: list[str]) -> None:
    """Writes the report when the run has evaluated or saved, until it ends."""
    folder, start = argv[1], int(argv[2])
    os.nice(19)  # training goes first
    written = {k: time for k, time in times(folder).items() if time <= start}
    is_last = False
    while not is_last:
        is_last = bool(select.select([sys.stdin], [], [], _SECONDS)[0])
        found = times(folder)
        if any(
            found.get(path) != written.get(path)
            for path in found
            if is_last or not path.endswith(run_files.CURVES)
        ):
            written = found
            try:
                runs = run_files.read_runs([folder])
                page.write(runs, os.path.join(folder, page.REPORT))
            except UserError:  # such as no point of a curve yet
                continue


def times(folder: str) -> dict[str, int]:
    """Path -> time of the last change of each file that a report shows."""
    names = ("eval_results.txt", "eval_report.json")
    names += (run_files.FILLED, run_files.CURVES)
    paths = [os.path.join(folder, name) for name in names]
    paths += storage.find(folder, "model.ckpt-*.json")
    paths += storage.find(f"{folder}/eval", "*")  # the curves of evaluations
    found = {}
    for path in paths:
        try:
            found[path] = storage.version(path)[1]
        except FileNotFoundError:
            continue
    return found


if __name__ == "__main__":
    main(sys.argv)
