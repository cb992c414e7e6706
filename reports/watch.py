"""Keeps the report of a run up to date while another process trains it.

    python -m reports.watch FOLDER NANOSECONDS WORKING_FOLDER

Files that were changed at this time or before are no news. Paths in the
settings of the run are relative to its working folder.

Standard input is a pipe that the run holds open: its end, however the run
ended, is the end of this process, after a last report.
"""

import contextlib
import os
import select
import sys

from common import storage
from common.errors import StorageError, UserError
from reports import page, run_files

# Seconds between two checks of the folder; a store charges for each.
_SECONDS, _SECONDS_REMOTE = 2.0, 30.0
# Leaves the accelerators to the run; its files on a store are not cached.
_ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "TPU_LOAD_LIBRARY": "0",
    "GCS_STAT_CACHE_MAX_AGE": "0",
}


def main(argv: list[str]) -> None:
    """Writes the report when the run has evaluated or saved, until it ends."""
    folder, start = argv[1], int(argv[2])
    os.chdir(argv[3])
    seconds = _SECONDS_REMOTE if storage.is_remote(folder) else _SECONDS
    os.environ.update(_ENVIRONMENT)  # of TensorFlow, which a store needs
    os.nice(19)  # training goes first
    written = {k: time for k, time in times(folder).items() if time <= start}
    is_last = False
    while not is_last:
        is_last = bool(select.select([sys.stdin], [], [], seconds)[0])
        # A curve may have no point yet, or a store may not answer.
        with contextlib.suppress(UserError, StorageError):
            found = times(folder)
            if any(
                found.get(path) != written.get(path)
                for path in found
                if is_last or not path.endswith(run_files.CURVES)
            ):
                written = found
                runs = run_files.read_runs([folder])
                page.write(runs, os.path.join(folder, page.REPORT))


def times(folder: str) -> dict[str, int]:
    """Path -> time of the last change of each file that a report shows."""
    names = ("eval_results.txt", "eval_report.json", run_files.CURVES)
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
