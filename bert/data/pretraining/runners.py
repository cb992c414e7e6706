"""Makes the records of a job with processes of this machine."""

import dataclasses
import functools
import json
from collections.abc import Callable

from bert.common import atomic, errors, processes, storage
from bert.common.errors import UserError
from bert.common.progress import Progress, log
from bert.data.corpus import documents as corpus_lib
from bert.data.pretraining.partitions import (
    Job,
    JobResult,
    Partition,
    read_json,
)

_PLAN = "plan.json"  # the partitions, beside their texts


def run_local(job: Job, num_processes: int) -> JobResult:
    """Makes all shards on this machine, in the folder of the job.

    Finished parts of an earlier run of the same job are reused.

    Args:
        job: Job. The job.
        num_processes: int. Maximum number of processes; 1 uses this process.

    Raises:
        UserError: The corpus cannot be used, or a file cannot be written.
    """
    plan = deal(job)
    missing = [x for x in plan if not storage.exists(job.part_path(x.number))]
    if len(missing) < len(plan):
        log(
            f"continuing: {len(plan) - len(missing)} of {len(plan)} "
            "partitions are finished"
        )

    # Each process has a copy of the job and makes its own tokenizer.
    open_job = functools.partial(dataclasses.replace, job)
    num_processes = min(num_processes, max(len(plan), len(job.outputs)))
    with processes.Pool(open_job, num_processes) as pool:
        _map(pool, Job.make_part, missing, "records", "partitions")
        counts = [read_json(job.part_path(x.number)) for x in plan]

        # Every shard has records from every section.
        sections = list(map(len, counts))
        shards = [(number, sections) for number in range(len(job.outputs))]
        entries = _map(pool, Job.write_shard, shards, "shards", "shards")
    return JobResult(plan, counts, entries)


def deal(job: Job) -> list[Partition]:
    """Writes the documents of each partition, unless an earlier run did.

    Args:
        job: Job. The job.

    Returns:
        list of Partition. All partitions.

    Raises:
        UserError: A file cannot be read or is changed during the run, or a
            group has too few documents.
    """
    if not storage.exists(job.texts):
        corpora = {}
        for name, files in job.inputs.items():
            of_group = f" of {name}" if name else ""
            log(f"reading {corpus_lib.number_of(files)}{of_group}")
            corpora[name] = corpus_lib.scan(files, job.max_document_mb)

        plan = job.plan(corpora)
        with atomic.whole_folder(job.texts) as folder:
            for name, corpus in corpora.items():
                corpus_lib.write_partitions(
                    corpus,
                    job.settings.random_seed,
                    [f"{folder}/{x.number}" for x in plan if x.group == name],
                    job.max_document_mb,
                )
            with storage.open_file(f"{folder}/{_PLAN}", "wb") as file:
                file.write(json.dumps(plan).encode())
    return [Partition(*x) for x in read_json(f"{job.texts}/{_PLAN}")]


def check_beam(runner: str) -> None:
    """Checks that a Beam runner can be used.

    Args:
        runner: str. Name of the runner.

    Raises:
        UserError: Beam is not installed, or the runner does not exist.
    """
    try:
        from apache_beam.runners import runner as runners
    except ImportError:
        raise errors.missing_packages(
            "beam", "apache_beam", needed_by="--runner"
        ) from None
    try:
        runners.create_runner(runner)
    except (ValueError, ImportError, AttributeError) as error:
        raise UserError(
            f"--runner={runner}: {error}", expected="a runner of Apache Beam"
        ) from None


def _map(
    pool: processes.Pool,
    work: Callable,
    items: list,
    description: str,
    unit: str,
) -> list:
    """Returns the results of a pool in order, and shows the progress."""
    results: list = []
    progress = Progress(description, len(items), unit)
    for result in pool.map(work, items, lambda: progress.update(len(results))):
        results.append(result)
        progress.update(len(results))
    return results
