"""Makes records: partitions of the corpus, their parts, and the shards.

The files depend only on the corpus, the settings and the vocabulary, not on
the number of processes or the machine.
"""

import dataclasses
import functools
import itertools
import math
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from bert.common import storage
from bert.common.errors import UserError
from bert.common.jobs import runners
from bert.data.corpus import documents as corpus_lib
from bert.data.corpus import groups
from bert.data.pretraining import instances, masking, rows
from bert.data.pretraining.settings import InstanceSettings
from bert.data.records import shuffle
from bert.data.records.shard_check import ShardEntry
from bert.data.text import vocabulary, word_boundaries
from bert.data.text.tokenizer import Tokenizer

_SECTION_BYTES = 24_000_000  # bytes of records that are held in memory


class Partition(NamedTuple):
    """A partition of the corpus: the unit of work.

    Attributes:
        number: int. Number of the partition, from 0, across all groups.
        group: str. Name of its group of the corpus.
        place: int. Number of the partition in its group, from 0.
        passes: float. Number of passes over it. The last pass uses the
            fractional part of the documents.
    """

    number: int
    group: str
    place: int
    passes: float


class JobResult(NamedTuple):
    """Result of the stages that make the shards.

    Attributes:
        partitions: list of Partition. Partitions of the corpus.
        counts: list of list of dict. Counts of the sections of each
            partition, see `Job.make_sections`.
        entries: list of ShardEntry. Manifest entries of the shards.
    """

    partitions: list[Partition]
    counts: list[list[dict[str, int]]]
    entries: list[ShardEntry]


@dataclasses.dataclass(frozen=True)
class Job(runners.Job):
    """A job that creates records, with methods for each part of the work.

    folder/
        texts/00003.0    documents of some files, distributed over the
                         partitions, until all parts are made
        plan.json        the partitions, and the names of the texts
        part-00007.0     records of a partition, in sections, distributed over
                         the shards
        part-00007.json  counts of each section and checksums, written last
        sections.json    number of sections of each part
        shard-00001      a shard, until all are complete

    Attributes:
        inputs: dict. Name of a group of the corpus -> its files.
        outputs: list of str. Paths of the shards.
        tokenizer: Tokenizer. Vocabulary and casing.
        settings: InstanceSettings. Settings of the instances.
        max_document_mb: int. Maximum size of a document in megabytes.
    """

    inputs: dict[str, list[str]]
    outputs: list[str]
    tokenizer: Tokenizer
    settings: InstanceSettings
    max_document_mb: int

    @property
    def files(self) -> list[str]:
        """Files of all groups."""
        return [path for files in self.inputs.values() for path in files]

    @property
    def texts(self) -> str:
        """Folder of the documents of all partitions."""
        return f"{self.folder}/texts"

    @property
    def plan_path(self) -> str:
        """File of the partitions; it exists if all texts are complete."""
        return f"{self.folder}/plan.json"

    @property
    def sections_path(self) -> str:
        """File of the numbers of sections of all parts."""
        return f"{self.folder}/sections.json"

    @functools.cached_property
    def text_paths(self) -> dict[str, list[str]]:
        """Name of a group -> files of its documents, in order."""
        names = runners.read_record(self.plan_path)["texts"]
        return {
            group: [f"{self.texts}/{x}" for x in of_group]
            for group, of_group in names.items()
        }

    @functools.cached_property
    def _tokenizer(self):
        if self.settings.word_boundaries:
            return word_boundaries.SegmentedTokenizer(self.tokenizer.exact)
        return self.tokenizer.fast

    @functools.cached_property
    def _masking(self) -> masking.Vocabulary:
        return masking.Vocabulary.of(self._tokenizer.vocab)

    def plan(self, corpora: dict[str, corpus_lib.Corpus]) -> list[Partition]:
        """Plans the partitions of all groups.

        Args:
            corpora: dict. Name of a group -> Corpus.

        Raises:
            UserError: A group has fewer than two documents.
        """
        for corpus in corpora.values():
            check_documents(corpus.num_documents, corpus.files)

        passes = groups.passes(
            {name: corpus.num_bytes for name, corpus in corpora.items()},
            self.settings.dupe_factor,
            self.settings.smoothing,
        )
        places = [
            (name, place)
            for name, corpus in corpora.items()
            for place in range(corpus.num_partitions)
        ]
        return [
            Partition(number, name, place, passes[name])
            for number, (name, place) in enumerate(places)
        ]

    def count_file(self, path: str) -> tuple[int, int]:
        """Counts the documents of a file of the corpus, and their bytes."""
        return corpus_lib.count_documents(path, self.max_document_mb)

    def write_texts(self, numbered: tuple[int, corpus_lib.Batch]) -> list[str]:
        """Writes the documents of some files, distributed over partitions.

        Args:
            numbered: (int, Batch). A number of the files, and the files.

        Returns:
            list of str. Names of the written files, in order.

        Raises:
            UserError: A file is changed during the run, or the disk is full.
        """
        number, batch = numbered
        names: list[str] = []
        for portions in corpus_lib.distribute(
            batch, self.settings.random_seed, self.max_document_mb
        ):
            names.append(f"{number:05d}.{len(names)}")
            with runners.whole_file(f"{self.texts}/{names[-1]}") as file:
                shuffle.write_portions(file, portions)
        return names

    def read_texts(self, partition: Partition) -> list[list[str]]:
        """Returns the lines of each document of a partition."""
        content = []
        for path in self.text_paths[partition.group]:
            with storage.open_file(path, "rb") as file:
                content.append(shuffle.read_portion(file, partition.place))
        return corpus_lib.split_partition(b"".join(content))

    def make_part(self, partition: Partition) -> None:
        """Writes the records of a partition.

        Args:
            partition: Partition. The partition.

        Raises:
            UserError: The partition has fewer than two documents with text,
                or the disk is full.
        """
        number, texts = partition.number, self.read_texts(partition)
        counts: list[dict[str, int]] = []
        hashes: dict[str, str] = {}
        for portions, of_section in self.make_sections(texts, partition):
            path = self.section_path(number, len(counts))
            with runners.part_file(path, hashes) as file:
                shuffle.write_portions(file, portions)
            counts.append(of_section)

        runners.finish_part(self.part_path(number), counts, hashes)

    def make_sections(
        self, texts: list[list[str]], partition: Partition
    ) -> Iterator[tuple[list[bytes], dict[str, int]]]:
        """Makes the records of a partition, in sections of bounded size.

        Args:
            texts: list of list of str. The lines of each document.
            partition: Partition. The partition.

        Yields:
            (portions, counts). The portion of each shard, see
            `shuffle.distribute`, and counts: `records`, and the names of
            `count_documents` and `rows.make_records`.
        """
        number, passes = partition.number, partition.passes
        documents = self.tokenize(texts)
        counts = Counter(self.count_documents(documents, texts))

        held: list[bytes] = []
        sections = 0
        last = math.ceil(passes) - 1
        for index in range(last + 1):
            records, of_pass = rows.make_records(
                documents,
                index,
                number,
                self.settings,
                self._masking,
                min(1.0, passes - index),
            )
            held += records
            counts.update(of_pass, records=len(records))

            if sum(map(len, held)) < _SECTION_BYTES and index < last:
                continue

            # The section's number gives each section a different order.
            key = f"{self.settings.random_seed}/{number}/{sections}"
            portions = shuffle.distribute(held, len(self.outputs), key)
            held.clear()  # the portions have copies
            yield portions, counts
            counts = Counter()
            sections += 1

    def tokenize(self, texts: list[list[str]]) -> instances.TokenizedDocuments:
        """Tokenizes documents; drops empty sentences and documents.

        Args:
            texts: list of list of str. The lines of each document.

        Raises:
            UserError: Fewer than two documents have text.
        """
        lines = [line for text in texts for line in text]
        ids, ends = self._tokenizer.ids_and_ends(lines)

        # A line may consist of characters that the tokenizer drops.
        length = np.diff(ends, prepend=0)
        document = np.repeat(np.arange(len(texts)), [len(x) for x in texts])
        sentences = np.bincount(document[length > 0])
        sentences = sentences[sentences > 0]
        check_documents(len(sentences), self.files)
        return instances.TokenizedDocuments(
            ids,
            ends[length > 0],
            np.cumsum(sentences),
        )

    def count_documents(
        self,
        documents: instances.TokenizedDocuments,
        texts: list[list[str]],
    ) -> dict[str, int]:
        """Counts the documents, sentences and tokens of a partition."""
        unknown_id = self._tokenizer.vocab[vocabulary.UNK]
        # With word boundaries, ids may be marked.
        unknown = documents.ids % self._masking.size == unknown_id
        return {
            "documents": len(documents.document_ends),
            "sentences": len(documents.sentence_ends),
            "tokens": len(documents.ids),
            "unknown_tokens": int(np.count_nonzero(unknown)),
            "continued_lines": count_continued(texts),
        }

    def write_shard(self, number: int) -> tuple[int, int, str]:
        """Writes a shard.

        Args:
            number: int. Number of the shard.

        Returns:
            (int, int, str). Fields of its `ShardEntry` in the manifest.

        Raises:
            UserError: The disk is full or cannot be written.
        """
        is_remote = storage.is_remote(self.folder)
        sections = runners.read_record(self.sections_path)
        with tempfile.NamedTemporaryFile() as spool:
            portions = [
                shuffle.open_portion(
                    f"{part}.{section}",
                    self.section_path(part, section),
                    number,
                    spool if is_remote else None,
                )
                for part, count in enumerate(sections)
                for section in range(count)
            ]
            with runners.whole_file(self.shard_path(number)) as file:
                entry = shuffle.write_shard(
                    portions, self.shard_key(number), file
                )
        return msgspec.structs.astuple(entry)

    def shard_key(self, number: int) -> str:
        """Returns the seed of the order of a shard."""
        return f"{self.settings.random_seed}/shard/{number}"

    def section_path(self, number: int, section: int) -> str:
        """Returns the file of a section of a part."""
        return f"{self.folder}/part-{number:05d}.{section}"

    def shard_path(self, number: int) -> str:
        """Returns the file of a shard until all shards are complete."""
        return f"{self.folder}/shard-{number:05d}"


def check_documents(count: int, files: list[str]) -> None:
    """Checks that a corpus has enough documents for random next sentences.

    Args:
        count: int. Number of documents with text.
        files: list of str. Files of the corpus, for the message.

    Raises:
        UserError: The corpus has fewer than two documents.
    """
    if count < 2:
        raise UserError(
            f"{count} {'document' if count else 'documents'} with text",
            path=",".join(files),
            expected="at least 2: a random next sentence comes from another "
            "document",
            fix="put a blank line between documents; prepare_corpus.py makes "
            "a corpus from raw text",
        )


def count_continued(texts: list[list[str]]) -> int:
    """Counts the lines that continue the previous line, as in wrapped prose.

    They start with a lower-case letter, and the previous line does not end a
    sentence. A corpus with one sentence per line has few such lines.

    Args:
        texts: list of list of str. The lines of each document.
    """
    return sum(
        line[:1].islower() and (before[-1:].isalnum() or before[-1:] == ",")
        for text in texts
        for before, line in itertools.pairwise(text)
    )
