"""Makes the records of a job in stages, on any runner.

files -> numbers of documents -> texts of the partitions -> parts -> shards

Between the stages are files in the folder of the job, so that a killed run
continues with the finished ones. A worker may be on another machine. The
process that starts the stages reads only counts.
"""

import itertools

from bert.common import storage
from bert.common.jobs import runners
from bert.common.jobs.any_runner import Run
from bert.common.progress import counted, log
from bert.data.corpus.documents import Corpus
from bert.data.pretraining.record_job import Job, JobResult, Partition
from bert.data.records.shard_check import ShardEntry


def make_shards(job: Job, run: Run) -> JobResult:
    """Makes all shards in the folder of the job.

    Finished parts of an earlier run of the same job are reused.

    Args:
        job: Job. The job.
        run: callable. The runner, see `any_runner.started`.

    Raises:
        UserError: The corpus cannot be used, or a file cannot be written.
    """
    plan = divide(job, run)
    missing = runners.missing(job, plan)
    paths = itertools.chain(*job.text_paths.values())
    if missing and not all(map(storage.exists, paths)):
        log("the text of a damaged part is removed: starting again")
        storage.remove_folder(job.folder)
        storage.make_folder(job.folder)
        plan = missing = divide(job, run)

    run(Job.make_part, missing, "records", "partitions")
    storage.remove_folder(job.texts)  # its space is needed for the shards
    counts = runners.counts_of(job, plan)

    # Every shard has records from every section.
    runners.write_record(job.sections_path, [*map(len, counts)])
    numbers = [*range(len(job.outputs))]
    entries = run(Job.write_shard, numbers, "shards", "shards")
    return JobResult(plan, counts, [ShardEntry(*x) for x in entries])


def divide(job: Job, run: Run) -> list[Partition]:
    """Writes the documents of all partitions, unless an earlier run did.

    Args:
        job, run: See `make_shards`.

    Returns:
        list of Partition. All partitions.

    Raises:
        UserError: A file cannot be read or is changed during the run, or a
            group has too few documents.
    """
    if not storage.exists(job.plan_path):
        for name, files in job.inputs.items():
            of_group = f" of {name}" if name else ""
            log(f"reading {counted(len(files), 'file')}{of_group}")
        counts = iter(
            run(
                Job.count_file,
                job.files,
                "reading",
                "MB",
                size_of=lambda path: storage.size(path) / 1e6,
            )
        )
        corpora = {
            name: Corpus.of(files, itertools.islice(counts, len(files)))
            for name, files in job.inputs.items()
        }
        plan = job.plan(corpora)

        storage.make_folder(job.texts)
        groups = [(name, x) for name in corpora for x in corpora[name].batches]
        written = run(
            Job.write_texts,
            [*enumerate(batch for _, batch in groups)],
            "partitions",
            "MB",
            size_of=lambda numbered: numbered[1].num_bytes / 1e6,
        )
        texts: dict[str, list[str]] = {name: [] for name in corpora}
        for (name, _), names in zip(groups, written, strict=True):
            texts[name] += names
        runners.write_record(
            job.plan_path, {"partitions": plan, "texts": texts}
        )

    partitions = runners.read_record(job.plan_path)["partitions"]
    return [Partition(*x) for x in partitions]
