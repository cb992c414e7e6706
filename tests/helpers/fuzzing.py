"""Drives a reader with edited files, in a process that may crash or hang.

parent                         child
watches memory and CPU time    hypothesis draws edits of a valid file,
starts the next child  <----   the reader reads it, a find is written
"""

import collections
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable

import hypothesis
import hypothesis.errors
from hypothesis import strategies

from common.errors import UserError
from tests.helpers import fuzz_edits

ROOT = pathlib.Path(__file__).parents[2]
HANG = 5.0  # seconds of CPU time for one file
STUCK = 60.0  # seconds without any
MEMORY = 1 << 30
_PER_CHUNK = 500
_SHRINKS = 150  # runs that make a find smaller


@dataclasses.dataclass(frozen=True)
class Case:
    """A file that is edited, and what reads it.

    Attributes:
        path: the file; it holds valid content between two runs.
        edit: edits -> content.
        read: reads the file and others beside it.
    """

    path: pathlib.Path
    edit: Callable[[list[fuzz_edits.Edit]], bytes]
    read: Callable[[], object]


@dataclasses.dataclass
class Report:
    """Counts of a target.

    Attributes:
        executions: number of files that were read.
        rejected: those that ended in a `UserError`.
        finds: signature -> path of the file.
    """

    executions: int = 0
    rejected: int = 0
    finds: dict[str, str] = dataclasses.field(default_factory=dict)


def run(target: str, seconds: float, finds: pathlib.Path) -> Report:
    """Fuzzes a reader of `fuzz_targets` for some time.

    Args:
        target: its name.
        seconds: of the whole run.
        finds: folder for the files that are not read well.
    """
    finds.mkdir(parents=True, exist_ok=True)
    report, end, number = Report(), time.monotonic() + seconds, 0
    known: set[str] = set()
    while time.monotonic() < end and number < 20:
        with tempfile.TemporaryDirectory() as folder:
            _one_child(target, end, finds, folder, number, report, known)
        number += 1
    return report


def _one_child(target, end, finds, folder, number, report, known) -> None:
    status = pathlib.Path(folder, "status.json")
    job = [target, folder, str(end - time.monotonic()), str(number)]
    job += [str(finds), json.dumps(sorted(known))]
    log = finds / f"{target}.log"
    with open(log, "ab") as errors:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.helpers.fuzzing", *job],
            cwd=ROOT,
            stdout=errors,
            stderr=errors,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        try:
            why = _watch(child, status, end)
        finally:
            child.kill()
            child.wait()
    found = json.loads(status.read_text()) if status.exists() else {}
    report.executions += found.get("executions", 0)
    report.rejected += found.get("rejected", 0)
    for signature, path in found.get("finds", {}).items():
        report.finds[signature] = path
        known.add(signature)
    if why:
        path = finds / f"{target}-{why}-{number}"
        current = found.get("current")
        if current and os.path.exists(current):
            path.write_bytes(pathlib.Path(current).read_bytes())
        report.finds[f"{why} ({pathlib.Path(current or '').name})"] = str(path)


def _watch(child: subprocess.Popen, status: pathlib.Path, end: float) -> str:
    """Waits for the end of a child; returns its error, or ""."""
    last, began, moved = "", 0.0, time.monotonic()
    while child.poll() is None:
        time.sleep(0.1)
        if not status.exists():
            if time.monotonic() > end + STUCK:
                return "never-started"
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            now = status.read_text()
            cpu, memory = _usage(child.pid)
            if memory > MEMORY:
                return "memory"
            if now != last:
                last, began, moved = now, cpu, time.monotonic()
            if json.loads(now)["current"] and cpu - began > HANG:
                return "hang"
            if time.monotonic() - moved > STUCK:
                return "stuck"
    code = child.returncode
    if code < 0:
        return signal.Signals(-code).name
    return f"exit-{code}" if code else ""


def _usage(pid: int) -> tuple[float, int]:
    """Seconds of CPU time and bytes of memory of a process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    fields = fields.split()
    ticks = os.sysconf("SC_CLK_TCK")
    cpu = (int(fields[11]) + int(fields[12])) / ticks
    return cpu, int(fields[21]) * os.sysconf("SC_PAGE_SIZE")


class _FoundError(Exception):
    """What hypothesis makes smaller."""


class _Child:
    """The loop of a child.

    Args:
        argv: target, its folder, seconds, number, folder of the finds, JSON
            of the signatures that are known.
    """

    def __init__(self, argv: list[str]):
        from tests.helpers import fuzz_planted, fuzz_targets

        self._target, folder, seconds, number, finds, known = argv
        self._status = pathlib.Path(folder, "status.json")
        self._end = time.monotonic() + float(seconds)
        self._seed, self._finds = int(number) << 20, pathlib.Path(finds)
        self._known = set(json.loads(known))
        self._runs = collections.Counter()  # of a signature
        self._counts = {"executions": 0, "rejected": 0, "finds": {}}
        inside = pathlib.Path(folder, "files")
        inside.mkdir()
        readers = fuzz_targets.READERS | fuzz_planted.READERS
        self._cases = readers[self._target](inside)
        self._valid = [case.path.read_bytes() for case in self._cases]
        for case in self._cases:
            case.read()  # valid files are accepted

    def run(self) -> None:
        """Fuzzes until the time is up."""

        settings = hypothesis.settings(
            max_examples=_PER_CHUNK,
            database=None,
            deadline=None,
            derandomize=False,
            report_multiple_bugs=False,
            verbosity=hypothesis.Verbosity.quiet,
            suppress_health_check=list(hypothesis.HealthCheck),
            phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        )
        which = strategies.integers(0, len(self._cases) - 1)
        while time.monotonic() < self._end:
            self._seed += 1

            @hypothesis.seed(self._seed)
            @settings
            @hypothesis.given(which, fuzz_edits.EDITS)
            def chunk(which, edits):
                if time.monotonic() < self._end:
                    self._once(which, edits)

            with contextlib.suppress(_FoundError, hypothesis.errors.Flaky):
                chunk()
        self._write_status("")

    def _once(self, which: int, edits: list[fuzz_edits.Edit]) -> None:
        case = self._cases[which]
        content = case.edit(edits)
        case.path.write_bytes(content)
        self._counts["executions"] += 1
        self._write_status(str(case.path))
        began = time.process_time()
        try:
            case.read()
        except UserError:
            self._counts["rejected"] += 1
        except Exception as error:
            self._find(_signature(error), case.path.name, content)
        finally:
            case.path.write_bytes(self._valid[which])
        if time.process_time() - began > HANG:
            self._find("slow", case.path.name, content)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if peak > MEMORY:
            self._find("memory", case.path.name, content)
            self._write_status("")
            os._exit(0)  # the peak would stay

    def _find(self, signature: str, name: str, content: bytes) -> None:
        """Writes a find, the smallest of its kind; raises for a new one."""
        signature = f"{name}: {signature}"
        if signature in self._known:
            return
        digest = hashlib.sha256(signature.encode()).hexdigest()[:8]
        path = self._finds / f"{self._target}-{digest}"
        if not path.exists() or len(content) <= path.stat().st_size:
            path.write_bytes(content)
            path.with_suffix(".txt").write_text(
                f"{signature}\n\n{traceback.format_exc()}"
            )
        self._counts["finds"][signature] = str(path)
        self._runs[signature] += 1
        if self._runs[signature] > _SHRINKS or signature.endswith("memory"):
            self._known.add(signature)
            return
        raise _FoundError(signature)

    def _write_status(self, current: str) -> None:
        text = json.dumps({**self._counts, "current": current})
        partial = self._status.with_suffix(".partial")
        partial.write_text(text)
        partial.replace(self._status)


def _signature(error: Exception) -> str:
    """Type of an error, and the last line of ours that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [x for x in frames if x.filename.startswith(str(ROOT))]
    ours = [x for x in ours if ".venv" not in x.filename] or frames
    name = os.path.relpath(ours[-1].filename, ROOT)
    return f"{type(error).__name__} at {name}:{ours[-1].lineno}"


if __name__ == "__main__":
    _Child(sys.argv[1:]).run()
