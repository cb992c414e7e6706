"""Runs a job with processes of this machine; settings of all runners.

A job is a frozen dataclass. Its methods compute a result from an item, such as
the part of a partition, and write files in its folder.
"""

import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, BinaryIO

from bert.common import atomic, processes, storage
from bert.common.errors import UserError
from bert.common.flags import OUTPUT, BaseSettings, changed, flag
from bert.common.progress import Progress, log
from bert.common.rules import excludes, needs


@dataclasses.dataclass(frozen=True)
class Runners(BaseSettings):
    """Settings of a script that runs a job."""

    num_processes: int | None = flag(None, "Number of processes.", at_least=1)
    runner: str | None = flag(
        None,
        "Apache Beam runner to use, such as DirectRunner or DataflowRunner; "
        "pass Beam's own options after --.",
    )


@dataclasses.dataclass(frozen=True)
class PartSettings(Runners):
    """Settings of a script that computes the rows of large files."""

    RULES = [
        needs("num_processes", "output_file"),
        needs("runner", "output_file"),
        needs("num_shards", "output_file"),
        needs("partition_mb", "output_file"),
        excludes("num_processes", "runner"),
    ]

    output_file: str | None = flag(
        None, "Output file.", path=True, topic=OUTPUT
    )
    num_processes: int | None = changed(
        Runners,
        "num_processes",
        help="Number of processes that compute --output_file. Default: one per "
        "core with OpenVINO, else 1.",
        topic=OUTPUT,
    )
    runner: str | None = changed(Runners, "runner", topic=OUTPUT)
    num_shards: int | None = flag(
        None,
        "Number of output files, such as name-00000-of-00010.jsonl. Default: "
        "one file with the name of --output_file.",
        at_least=1,
        topic=OUTPUT,
    )
    partition_mb: float | None = flag(
        None,
        "Megabytes of input in a partition, the unit of work and of resuming. "
        "Default: 0.25.",
        at_least=0.001,
        at_most=1000,
        topic=OUTPUT,
    )


@dataclasses.dataclass(frozen=True)
class Job:
    """A job that makes a part of each partition, see the module.

    Attributes:
        folder: str. Folder of its unfinished files, which all workers can open.
    """

    folder: str

    def part_path(self, number: int) -> str:
        """Returns the JSON file that exists if a part is complete.

        Args:
            number: int. Number of the partition.
        """
        return f"{self.folder}/part-{number:05d}.json"


def split_options(argv: list[str]) -> tuple[list[str], list[str]]:
    """Splits a command line at `--`: the script's flags, Beam's options."""
    if "--" not in argv:
        return argv, []
    end = argv.index("--")
    return argv[:end], argv[end + 1 :]


def opener(job: Any) -> Callable[[], Any]:
    """Returns a function that copies a job, to be sent to another process.

    Args:
        job: dataclass. The job. Cached values are not copied.
    """
    fields = {x.name: getattr(job, x.name) for x in dataclasses.fields(job)}
    kind: Callable = type(job)
    return functools.partial(kind, **fields)


def missing(job: Job, plan: Sequence[Any]) -> list:
    """Returns the partitions without a part of an earlier run; logs the others.

    Args:
        job: Job. The job.
        plan: sequence. All partitions, each with its number.
    """
    marks = {x: job.part_path(x.number) for x in plan}
    names = {*storage.list_folder(job.folder)}
    found = {x: y for x, y in marks.items() if os.path.basename(y) in names}
    whole = {x for x, path in found.items() if _is_whole(path)}
    if found:
        damaged = len(found) - len(whole)
        are = "are" if damaged > 1 else "is"
        log(
            f"continuing: {len(whole)} of {len(plan)} partitions are finished"
            + f"; {damaged} {are} damaged, and {are} computed again"
            * bool(damaged)
        )
    return [x for x in plan if x not in whole]


def _is_whole(path: str) -> bool:
    """Returns whether the files of a part are as they were written."""
    try:
        hashes = read_record(path)["files"]
    except UserError:
        return False
    folder = os.path.dirname(path)
    files = {os.path.join(folder, name): x for name, x in hashes.items()}
    return all(
        storage.exists(file) and storage.hash_file(file) == sha256
        for file, sha256 in files.items()
    )


def map_shown(
    pool: processes.Pool,
    work: Callable[[Any, Any], Any],
    items: Sequence[Any],
    description: str,
    unit: str,
    size_of: Callable[[Any], float] = lambda item: 1,
) -> list:
    """Returns the results of a pool in order, and shows the progress.

    Args:
        pool: Pool. The pool.
        work: callable. Called with the pool's worker and an item.
        items: sequence. The items.
        description, unit: str. See `Progress`.
        size_of: callable. Amount of an item, in the unit. Default: 1.
    """
    results: list = []
    done = [*itertools.accumulate(map(size_of, items), initial=0)]
    progress = Progress(description, done[-1], unit)

    def show() -> None:
        progress.update(done[len(results)])

    for result in pool.map(work, items, show):
        results.append(result)
        show()
    return results


def read_json(path: str) -> Any:
    """Reads a JSON file that this run has written."""
    with storage.open_file(path, "rb") as file:
        return json.load(file)


def write_record(path: str, value: Any) -> None:
    """Writes a JSON value, with a checksum, in the folder of a job.

    Args:
        path: str. The file.
        value: Any. The value.
    """
    text = json.dumps(value)
    content = {"sha256": _hash(text), "value": json.loads(text)}
    with whole_file(path) as file:
        file.write(json.dumps(content).encode())


def read_record(path: str) -> Any:
    """Reads the value of `write_record`, also of an earlier run.

    Raises:
        UserError: The file is damaged.
    """
    try:
        content = read_json(path)
        if content["sha256"] == _hash(json.dumps(content["value"])):
            return content["value"]
    except (ValueError, LookupError, TypeError):
        pass
    raise UserError(
        "is damaged",
        path=path,
        fix="remove its folder, and repeat the command",
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@contextlib.contextmanager
def part_file(path: str, hashes: dict[str, str]) -> Iterator[BinaryIO]:
    """Context manager that opens a file of a part, see `whole_file`.

    Args:
        path: str. The file.
        hashes: dict. Gets the hash of the file at the end, for `finish_part`.
    """
    with whole_file(path) as file:
        yield file
        file.flush()
        hashes[os.path.basename(path)] = storage.hash_file(file.name)


def finish_part(path: str, counts: Any, hashes: dict[str, str]) -> None:
    """Marks a part as complete.

    Args:
        path: str. The file that marks it, see `Job`.
        counts: Any. Counts of the part, a JSON value.
        hashes: dict. Hashes of its files, from `part_file`.
    """
    write_record(path, {"files": hashes, "counts": counts})


def counts_of(job: Job, plan: Sequence[Any]) -> list:
    """Returns the counts of all parts; see `finish_part`.

    Args:
        job, plan: See `missing`.
    """
    return [read_record(job.part_path(x.number))["counts"] for x in plan]


def whole_file(path: str) -> AbstractContextManager[BinaryIO]:
    """Opens a file in the folder of a job, which appears at the end.

    Args:
        path: str. The file. Processes may write it at once, such as one of a
            killed run; their unfinished files are removed with the folder.
    """
    return atomic.open_whole(path, f"{uuid.uuid4().hex}.partial")
