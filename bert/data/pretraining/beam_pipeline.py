"""Creates records with Apache Beam; the files equal those of `local_runner`.

files -> documents -> partitions -> parts of the records -> shards
         (key: partition)           (key: shard)

Beam's workers read the corpus and exchange its text. Records are written to
files beside the shards, and Beam shuffles only the names of these files. So a
runner that shuffles in memory holds only the text. The process that launches
the workers receives only counts and file names.
"""

import dataclasses
import json
import tempfile
import uuid
import zlib
from collections.abc import Iterable, Iterator

import apache_beam as beam
import msgspec
import numpy as np

from bert.common.errors import UserError
from bert.common.jobs import beam_runner
from bert.common.jobs.beam_runner import RESULTS
from bert.common.jobs.runners import read_json
from bert.data.corpus import documents as corpus_lib
from bert.data.pretraining import partitions
from bert.data.pretraining.partitions import Job, JobResult, Partition
from bert.data.records import shuffle
from bert.data.records.shard_check import ShardEntry

_BATCH_BYTES = 4_000_000  # bytes of documents that a worker sends at once


@dataclasses.dataclass(frozen=True)
class _File:
    """A file of the corpus.

    Attributes:
        path: str. The file.
        group: str. Name of its group.
        first: int. Index of its first document in the group.
    """

    path: str
    group: str
    first: int = 0


def run(job: Job, runner: str, options: list[str]) -> JobResult:
    """Makes all shards with Apache Beam, in the folder of the job.

    Args:
        job: Job. Workers must be able to open its inputs and its folder.
        runner: str. Beam's name of the runner, such as `DirectRunner`.
        options: list of str. Beam's command-line options.

    Raises:
        UserError: A file cannot be read, or a group has too few documents.
    """
    files = [
        _File(path, name)
        for name, paths in job.inputs.items()
        for path in paths
    ]

    # Index and partition of a document depend on the previous documents.
    counts_path = f"{job.folder}/counts.json"
    counted = beam_runner.run(
        job, _count_documents, files, counts_path, runner, options
    )
    corpora, placed = {}, []
    for name, paths in job.inputs.items():
        rows = [counted[i] for i, x in enumerate(files) if x.group == name]
        documents, sizes = np.array(rows, np.int64).T
        corpora[name] = corpus_lib.Corpus(paths, documents, sizes)
        firsts = (np.cumsum(documents) - documents).tolist()
        placed += [_File(x, name, first) for x, first in zip(paths, firsts)]

    plan = job.plan(corpora)
    beam_runner.launch(
        runner,
        options,
        list(enumerate(placed)),
        _ReadDocuments(job, plan, corpora),
        _MakeParts(job, plan),
        _WriteShards(job, counts_path),
    )
    counts = beam_runner.read_results(counts_path)
    entries = [
        ShardEntry(**read_json(f"{job.shard_path(number)}.json"))
        for number in range(len(job.outputs))
    ]
    return JobResult(plan, counts, entries)


def _count_documents(job: Job, file: _File) -> tuple[int, int]:
    """Counts the documents of a file, and their bytes."""
    count = size = 0
    for text in corpus_lib.documents(
        file.path, None, job.max_document_mb, beam_runner.open_file
    ):
        count += 1
        size += len(text)
    return count, size


class _ReadDocuments(beam.DoFn):
    """number, [file] -> partition, (number of a document, packed text)."""

    def __init__(
        self,
        job: Job,
        plan: list[Partition],
        corpora: dict[str, corpus_lib.Corpus],
    ):
        self._job, self._corpora = job, corpora
        self._firsts = {x.group: x.number for x in reversed(plan)}

    def process(self, element):
        _, (file, *_) = element

        # Batches bound the memory of a worker for files of any size.
        first, size = file.first, 0
        texts: list[bytes] = []
        for text in corpus_lib.documents(
            file.path, None, self._job.max_document_mb, beam_runner.open_file
        ):
            texts.append(text)
            size += len(text)
            if size >= _BATCH_BYTES:
                yield from self._distribute(file.group, first, texts)
                first, size, texts = first + len(texts), 0, []
        yield from self._distribute(file.group, first, texts)

    def _distribute(
        self, group: str, first: int, texts: list[bytes]
    ) -> Iterator[tuple[int, tuple[int, bytes]]]:
        seed = self._job.settings.random_seed
        numbers = self._corpora[group].partitions(seed, first, len(texts))
        batches: dict[int, tuple[int, list[bytes]]] = {}
        for i, (number, text) in enumerate(zip(numbers.tolist(), texts)):
            batches.setdefault(number, (first + i, []))[1].append(text)

        for number, (document, lines) in batches.items():
            content = zlib.compress(b"\n".join([*lines, b""]), 1)
            yield self._firsts[group] + number, (document, content)


class _MakeParts(beam.DoFn):
    """partition, packed text -> shard, (partition, section, file); counts."""

    def __init__(self, job: Job, plan: list[Partition]):
        self._job, self._plan = job, plan

    def process(self, element):
        number, batches = element
        content = b"".join(
            zlib.decompress(text) for _, text in sorted(dict(batches).items())
        )
        sections = self._job.make_sections(
            corpus_lib.split_partition(content), self._plan[number]
        )

        # Errors are returned: Beam would retry and wrap a raised error.
        counts: list[dict[str, int]] = []
        error = None
        try:
            for index, (portions, of_section) in enumerate(sections):
                counts.append(of_section)
                # Unique for this attempt: Beam may make a part several times.
                path = f"{self._job.folder}/part-{uuid.uuid4().hex}"
                with beam_runner.open_file(path, "wb") as file:
                    shuffle.write_portions(file, portions)
                for shard in range(len(portions)):
                    yield shard, (number, index, path)
        except UserError as rejection:
            error = str(rejection)
        yield RESULTS, (number, counts, error)


class _WriteShards(beam.DoFn):
    """shard, [(partition, section, file)] -> file; counts -> file."""

    def __init__(self, job: Job, counts_path: str):
        self._job, self._counts_path = job, counts_path

    def process(self, element):
        shard, values = element
        if shard == RESULTS:
            beam_runner.write(
                self._counts_path, beam_runner.results_json(values)
            )
            return

        path = self._job.shard_path(shard)
        attempt = f"{path}.{uuid.uuid4().hex}"
        with (
            tempfile.NamedTemporaryFile() as spool,
            beam_runner.open_file(attempt, "wb") as file,
        ):
            key = self._job.shard_key(shard)
            portions = _spool(shard, values, spool)
            entry = shuffle.write_shard(portions, key, file)
        beam_runner.rename(attempt, path)
        beam_runner.write(
            f"{path}.json", json.dumps(msgspec.structs.asdict(entry))
        )


def _spool(
    shard: int, values: Iterable[tuple[int, int, str]], spool
) -> list[shuffle.Portion]:
    """Copies the portions of a shard to a local file."""
    offsets = {}
    for number, section, path in values:
        offsets[number, section] = spool.tell()
        with beam_runner.open_file(path, "rb") as file:
            spool.write(shuffle.read_portion(file, shard))
    spool.flush()

    # Beam's order of the values is arbitrary, so they are sorted by part.
    return [
        shuffle.Portion.open(
            partitions.section_name(*key), spool.name, offsets[key]
        )
        for key in sorted(offsets)
    ]
