"""Makes the records of a job with processes of this machine."""

from bert.common import atomic, storage
from bert.common.jobs import runners
from bert.common.progress import counted, log
from bert.data.corpus import documents as corpus_lib
from bert.data.pretraining.partitions import Job, JobResult, Partition

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
    missing = runners.missing(job, plan)
    if not all(storage.exists(f"{job.texts}/{x.number}") for x in missing):
        log("the text of a damaged part is removed: starting again")
        storage.remove_folder(job.folder)
        storage.make_folder(job.folder)
        plan = missing = deal(job)

    # Each process makes its own tokenizer.
    num_processes = min(num_processes, max(len(plan), len(job.outputs)))
    with runners.open_pool(job, num_processes) as pool:
        runners.map_shown(pool, Job.make_part, missing, "records", "partitions")
        counts = runners.counts_of(job, plan)

        # Every shard has records from every section.
        sections = list(map(len, counts))
        shards = [(number, sections) for number in range(len(job.outputs))]
        entries = runners.map_shown(
            pool, Job.write_shard, shards, "shards", "shards"
        )
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
            log(f"reading {counted(len(files), 'file')}{of_group}")
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
            runners.write_record(f"{folder}/{_PLAN}", plan)
    return [Partition(*x) for x in runners.read_record(f"{job.texts}/{_PLAN}")]
