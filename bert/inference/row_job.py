"""Computes the rows of large files in partitions, which a killed run keeps.

    files -> partitions -> parts -> one file, or shards

A partition is a range of whole rows. Its rows are computed together, in the
same batches in every run, so that the bytes depend neither on the number of
processes nor on the runner. The parts are in the order of the rows.

    folder/
        run.json         model, input and flags, see `RowJob.record`
        plan.json        the partitions
        part-00007       the results of the rows of a partition
        part-00007.json  its counts and checksum, written last

The unit of Apache Beam's work is a partition, too. Its `RunInference` would
form other batches than the whole partition, so it is not used.
"""

import dataclasses
import functools
import gzip
import hashlib
import importlib.metadata
import json
import math
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, Self

from bert.common import atomic, errors, flags, processes, storage
from bert.common import outputs as outputs_lib
from bert.common.errors import UserError
from bert.common.formats.json_files import Json
from bert.common.jobs import any_runner, runners, scratch
from bert.common.jobs.runners import PartSettings
from bert.common.progress import log
from bert.common.text_lines import Span

PARTITION_MB = 0.25  # a minute of a large model on two cores
# Flags that do not change the parts, or are compared as files or as `model`.
_FREE = {
    *("input_file", "output_file", "num_processes", "num_shards", "runner"),
    *("model", "init_checkpoint", "engine", "use_one_hot_embeddings"),
    *("vocab_file", "bert_config_file", "do_lower_case", "strip_accents"),
}
# Starts of names in `RowJob.record` whose values are shown; others are hashes.
_SHOWN = "--", "version of openvino", "version of tensorflow"


class Partition(NamedTuple):
    """A range of whole rows.

    Attributes:
        number: int. Number of the partition, from 0.
        span: Span. The rows in their file.
        first: int. Number of rows before it, in all files.
        num_rows: int. Number of its rows.
    """

    number: int
    span: Span
    first: int
    num_rows: int


class _Streams(threading.local):
    """The compressed file that this thread reads; it has no random access."""

    path: str = ""
    file: gzip.GzipFile | None = None

    def open(self, path: str) -> gzip.GzipFile | None:
        """Returns an open file to read a span from, or None for others."""
        if not path.endswith(".gz"):
            return None
        if path != self.path:
            self.path, self.file = path, None
            self.file = gzip.GzipFile(fileobj=storage.open_file(path, "rb"))
        return self.file


@dataclasses.dataclass(frozen=True)
class RowJob(runners.Job):
    """A job that computes the rows of files with a model, in any thread.

    A subclass has `ranges` and `write`. It loads its model at the first call,
    once in each process.

    Attributes:
        files: list of str. The input files, in order.
        output_file: str. The output file, or the name of its shards.
        outputs: list of str. The output file, or its shards.
        num_bytes: float. Size of a partition.
        num_processes: int. Number of processes without Beam.
        num_threads: int or None. Number of threads of OpenVINO. None: one per
            core.
        record: dict. Everything that the parts depend on, as JSON values with
            names for messages.
    """

    files: list[str]
    output_file: str
    outputs: list[str]
    num_bytes: float
    num_processes: int
    num_threads: int | None
    record: dict[str, Json]

    @classmethod
    def open(
        cls,
        settings: PartSettings,
        input_file: str,
        output_file: str,
        model: dict[str, str],
        uses_openvino: bool,
        *fields: object,
    ) -> Self:
        """Lists the input, and describes all that the output depends on.

        Args:
            settings: PartSettings. Settings of the script.
            input_file: str. Its --input_file, which may be a pattern.
            output_file: str. Its --output_file.
            model: dict. `model` and `engine`: a hash and a name.
            uses_openvino: bool. Whether OpenVINO computes the model.
            *fields: object. Fields of the subclass.

        Raises:
            UserError: An input file is missing, or is also an output; or there
                are shards of an earlier command with another number of shards.
        """
        files = storage.list_files(input_file, "input_file")
        outputs = shards_of(output_file, settings.num_shards)
        outputs_lib.check_file(output_file, "output_file")
        outputs_lib.check_no_input(outputs, files)
        _check_shards(output_file, outputs)
        record = _record(settings, files, model, uses_openvino)
        folder, name = os.path.split(storage.absolute(output_file))
        num_bytes = 1e6 * (settings.partition_mb or PARTITION_MB)

        # Measured: processes of one thread are faster than one of all threads.
        cores = processes.num_cores()
        partitions = math.ceil(sum(map(storage.size, files)) / num_bytes)
        count = settings.num_processes or (cores if uses_openvino else 1)
        count = max(1, min(count, partitions))
        is_alone = count == 1 or settings.runner
        return cls(
            scratch.folder_of(folder, [name], "rows", bool(settings.runner)),
            files,
            output_file,
            outputs,
            num_bytes,
            count,
            None if is_alone else max(1, cores // count),
            record,
            *fields,
        )

    @property
    def names_files(self) -> bool:
        """Whether an error of a row names its file."""
        return len(self.files) > 1

    @functools.cached_property
    def _streams(self) -> _Streams:
        return _Streams()

    def ranges(self, path: str) -> Iterator[tuple[Span, int]]:
        """Yields the ranges of a file, and their numbers of rows."""
        raise NotImplementedError

    def write(
        self,
        partition: Partition,
        stream: gzip.GzipFile | None,
        file: BinaryIO,
    ) -> dict[str, Json]:
        """Writes the results of a partition, and returns counts.

        Args:
            partition: Partition. The partition.
            stream: binary file or None. The open compressed file.
            file: binary file. Open for writing.
        """
        raise NotImplementedError

    def divide(self, path: str) -> list:
        """Divides a file into partitions: their spans and numbers of rows.

        Args:
            path: str. The file.
        """
        return [*self.ranges(path)]

    def make_part(self, partition: Partition) -> None:
        """Writes the results of a partition.

        Args:
            partition: Partition. The partition.

        Raises:
            UserError: The input cannot be read, or the disk is full.
        """
        stream = self._streams.open(partition.span.path)
        number, hashes = partition.number, dict[str, str]()
        with runners.part_file(self.data_path(number), hashes) as file:
            counts = self.write(partition, stream, file)
        runners.finish_part(self.part_path(number), counts, hashes)

    def data_path(self, number: int) -> str:
        """Returns the file of the results of a partition."""
        return f"{self.folder}/part-{number:05d}"


def _record(
    settings: PartSettings,
    files: list[str],
    model: dict[str, str],
    uses_openvino: bool,
) -> dict[str, Json]:
    """Returns `RowJob.record`."""
    given = flags.as_dict(settings).items()
    package = "openvino" if uses_openvino else "tensorflow"
    record = {
        **model,
        "version of this project": _hash_of_code(),
        f"version of {package}": _installed(package),
        "list of files": [*map(storage.absolute, files)],
        **{_version_of(x): storage.version(x) for x in files},
        **{f"--{k}": x for k, x in given if k not in _FREE},
    }
    return json.loads(json.dumps(record))


def shards_of(path: str, count: int | None) -> list[str]:
    """Returns the paths of the output files.

    Args:
        path: str. The --output_file.
        count: int or None. Number of shards. None: one file.
    """
    if count is None:
        return [path]
    name, ending = os.path.splitext(path)
    return [f"{name}-{i:05d}-of-{count:05d}{ending}" for i in range(count)]


def _check_shards(output_file: str, outputs: list[str]) -> None:
    """Checks that a glob of the shards will match no others."""
    if outputs == [output_file]:
        return
    shards = [*map(storage.absolute, outputs)]
    folder, name = os.path.split(storage.absolute(output_file))
    start, end = map(re.escape, os.path.splitext(name))
    for found in storage.list_folder(folder):
        path = os.path.join(folder, found)
        is_shard = re.fullmatch(rf"{start}-\d+-of-\d+{end}", found)
        if is_shard and path not in shards:
            raise UserError(
                "is a shard of an earlier command",
                path=path,
                expected="one set of shards with this name",
                fix="remove the earlier shards, or choose another "
                "--output_file",
            )


def compute(
    job: RowJob,
    settings: PartSettings,
    beam_options: list[str],
    join: Callable[[list[str], list[dict], str], None],
) -> list[dict[str, Json]]:
    """Computes all partitions, and joins their parts to the output.

    Args:
        job: RowJob. The job.
        settings: PartSettings. Runner and shards.
        beam_options: list of str. Beam's command-line options.
        join: callable. Writes an output file from the files of its parts and
            the counts of all parts.

    Returns:
        list of dict. Counts of each partition.

    Raises:
        UserError: A file cannot be read or written, or unfinished files belong
            to a run with another model, input or flag.
    """
    folder, name = os.path.split(storage.absolute(job.output_file))
    runner = any_runner.started(job, settings, beam_options, job.num_processes)
    with (
        scratch.claim(folder, [name], job.folder, (BaseException,)),
        runner as run,
    ):
        _check_record(job)
        plan = _plan(job, run)
        if len(plan) < len(job.outputs):
            raise UserError(
                f"--num_shards={len(job.outputs)}",
                expected=f"at most {len(plan)}, the number of partitions",
                fix="pass a smaller --partition_mb",
            )
        left = runners.missing(job, plan)
        run(RowJob.make_part, left, "rows", "rows", size_of=_num_rows)
        _check_unchanged(job)

        counts = runners.counts_of(job, plan)
        for i, path in enumerate(job.outputs):
            chosen = _range(i, len(job.outputs), len(plan))
            join([job.data_path(x) for x in chosen], counts, path)
        return counts


def copy_parts(parts: list[str], counts: list[dict], path: str) -> None:
    """Writes an output file of lines.

    Args:
        parts: list of str. Files of parts.
        counts: list of dict. Ignored.
        path: str. The output file.
    """
    with atomic.open_whole(path) as file:
        for part in parts:
            with storage.open_file(part, "rb") as read:
                shutil.copyfileobj(read, file, 1 << 20)


def _hash_of_code() -> str:
    """Returns a hash of the modules of this project."""
    folder = storage.__file__.rpartition("/common/")[0]
    hashes = [
        storage.hash_file(path)
        for path in storage.files_below(folder)
        if path.endswith(".py")
    ]
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


def _installed(package: str) -> str | None:
    """Returns the version of a package, or None if pip did not install it."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _version_of(path: str) -> str:
    """Returns the name of a file's size and time in `RowJob.record`."""
    return f"version of {storage.absolute(path)}"


def _num_rows(partition: Partition) -> int:
    return partition.num_rows


def _range(number: int, shards: int, partitions: int) -> range:
    """Returns the numbers of the partitions of a shard."""
    return range(
        number * partitions // shards, (number + 1) * partitions // shards
    )


def _plan(job: RowJob, run: any_runner.Run) -> list[Partition]:
    """Returns the partitions of all files, from an earlier run if there is one.

    Raises:
        UserError: A file cannot be read, or all files are empty.
    """
    path = f"{job.folder}/plan.json"
    if not storage.exists(path):
        log(f"dividing {errors.name_of(job.files)} into partitions")
        divided = run(RowJob.divide, job.files, "dividing", "files")
        # The place of a file: the same command may spell its path otherwise.
        listed = [
            [number, *place, rows]
            for number, spans in enumerate(divided)
            for (_, *place), rows in spans
        ]
        if not listed:
            raise UserError(
                "no rows", path=job.files[0], expected="one text per line"
            )
        runners.write_record(path, listed)

    plan, first = [], 0
    for file, *place, rows in runners.read_record(path):
        span = Span(job.files[file], *place)
        plan.append(Partition(len(plan), span, first, rows))
        first += rows
    return plan


def _check_record(job: RowJob) -> None:
    """Records the inputs of the parts, or compares them with a killed run's.

    Raises:
        UserError: It differs.
    """
    path = f"{job.folder}/run.json"
    if not storage.exists(path):
        runners.write_record(path, job.record)
        return

    before = runners.read_record(path)
    changed = [
        name
        for name in {**job.record, **before}
        if job.record.get(name) != before.get(name)
    ]
    for name in changed[:1]:
        found = before.get(name)
        raise UserError(
            f"has the finished partitions of a run with another {name}",
            path=job.folder,
            expected=json.dumps(found) if name.startswith(_SHOWN) else None,
            fix="repeat that command, or remove the folder",
        )


def _check_unchanged(job: RowJob) -> None:
    """Checks that the input is the one that was divided.

    Raises:
        UserError: A file has changed since the start.
    """
    for path in job.files:
        if [*storage.version(path)] != job.record[_version_of(path)]:
            raise UserError("has changed while it was read", path=path)
