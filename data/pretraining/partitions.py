"""Records and counts of one partition of the corpus, and of one shard.

They depend on the partition, the settings and the seed alone, not on the
process or the machine that makes them.
"""

import dataclasses
import functools
import itertools
import json
import math
import os
from collections import Counter
from collections.abc import Iterator

import numpy as np

from common import storage
from common.errors import UserError
from data.corpus import documents as corpus
from data.pretraining import instances as pretraining
from data.pretraining import masking, records
from data.pretraining.settings import InstanceSettings
from data.records import shuffle, writer
from data.text import vocabulary, word_boundaries
from data.text.tokenizer import Tokenizer

_SECTION_BYTES = 24_000_000  # of records, held in memory at once


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Settings that all partitions and shards share.

    Attributes:
        tokenizer: vocabulary and casing.
        settings: settings of the instances.
        num_shards: N, number of shards.
        source: files of the corpus, for messages.
    """

    tokenizer: Tokenizer
    settings: InstanceSettings
    num_shards: int
    source: str


@dataclasses.dataclass(frozen=True)
class Group:
    """The partitions of a group of the corpus.

    Attributes:
        first: number of its first partition.
        count: number of its partitions.
        passes: number of passes over them; a fraction is the share of the
            documents that the last pass uses.
    """

    first: int
    count: int
    passes: float


@dataclasses.dataclass(frozen=True)
class Plan:
    """The partitions of a corpus.

    Attributes:
        recipe: settings of all partitions.
        groups: name -> its partitions; they are numbered over all groups.
    """

    recipe: Recipe
    groups: dict[str, Group]

    @property
    def passes(self) -> list[float]:
        """Number of passes over each partition."""
        return [x.passes for x in self.groups.values() for _ in range(x.count)]


@dataclasses.dataclass(frozen=True)
class Partition:
    """A partition of the corpus: the unit of work.

    Attributes:
        number: number of the partition, from 0.
        text_path: file of its documents.
        part_path: start of the names of the files of its records.
        passes: number of passes over it, as in `Group`.
    """

    number: int
    text_path: str
    part_path: str
    passes: float


@dataclasses.dataclass(frozen=True)
class Part:
    """The records of a partition in files, one for each section.

    Attributes:
        counts: counts with the names of `count_documents` and
            `records.make_records`, and `records`.
        sections: sha256 of each file.
    """

    counts: dict[str, int]
    sections: list[str]


@dataclasses.dataclass(frozen=True)
class Shard:
    """A shard to write.

    Attributes:
        number: number of the shard, from 0.
        path: its file.
        parts: names and paths of the sections of all partitions.
    """

    number: int
    path: str
    parts: list[tuple[str, str]]


class Worker:
    """Makes the records of partitions and writes shards.

    Args:
        recipe: settings of all partitions and shards.
    """

    def __init__(self, recipe: Recipe):
        self._recipe = recipe

    @functools.cached_property
    def _tokenizer(self):
        tokenizer = self._recipe.tokenizer
        if self._recipe.settings.word_boundaries:
            return word_boundaries.SegmentedTokenizer(tokenizer.exact)
        return tokenizer.fast

    @functools.cached_property
    def _masking(self) -> masking.Vocabulary:
        return masking.Vocabulary.of(self._tokenizer.vocab)

    def find_part(self, partition: Partition) -> Part | None:
        """Finds the records that an earlier run of the same command made."""
        try:
            with storage.open_file(f"{partition.part_path}.json", "rb") as file:
                part = Part(**json.load(file))
        except (OSError, ValueError, TypeError):
            return None
        whole = all(
            writer.has_digest(section_path(partition, number), expected)
            for number, expected in enumerate(part.sections)
        )
        return part if whole else None

    def make_part(self, partition: Partition) -> Part:
        """Writes the records of a partition, and removes its text.

        Raises:
            UserError: the partition has fewer than two documents with text,
                or the disk is full.
        """
        texts = corpus.read_partition(partition.text_path)
        counts = Counter()
        hashes = []
        for portions, more in self.make_sections(
            texts, partition.number, partition.passes
        ):
            counts.update(more)
            path = section_path(partition, len(hashes))
            # An orphan may be at work.
            with storage.whole_file(path, f"{os.getpid()}.partial") as own:
                hashes.append(shuffle.write_part(own, portions))
        part = Part(dict(counts), hashes)
        storage.write_whole(
            f"{partition.part_path}.json",
            json.dumps(dataclasses.asdict(part)),
            f"{os.getpid()}.partial",
        )
        storage.remove(partition.text_path)
        return part

    def make_sections(
        self, texts: list[list[str]], number: int, passes: float
    ) -> Iterator[tuple[list[bytes], dict[str, int]]]:
        """Makes the records of a partition, in sections of bounded size.

        Args:
            texts: the documents, each as its lines.
            number: number of the partition.
            passes: as in `Partition`.

        Yields:
            the portions of all shards, and counts.
        """
        documents = self.tokenize(texts)
        counts = Counter(self.count_documents(documents, texts))
        held: list[bytes] = []
        sections = 0
        last = math.ceil(passes) - 1
        for index in range(last + 1):
            made, more = records.make_records(
                documents,
                index,
                number,
                self._recipe.settings,
                self._masking,
                min(1.0, passes - index),
            )
            held += made
            counts.update(more, records=len(made))
            if sum(map(len, held)) < _SECTION_BYTES and index < last:
                continue
            key = f"{self._recipe.settings.random_seed}/{number}/{sections}"
            portions = shuffle.distribute(held, self._recipe.num_shards, key)
            held.clear()
            yield portions, counts
            counts = Counter()
            sections += 1

    def tokenize(
        self, texts: list[list[str]]
    ) -> pretraining.TokenizedDocuments:
        """Tokenizes documents; empty sentences and documents are dropped.

        Raises:
            UserError: fewer than two documents have text.
        """
        lines = [line for text in texts for line in text]
        ids, ends = self._tokenizer.ids_and_ends(lines)
        length = np.diff(ends, prepend=0)
        document = np.repeat(np.arange(len(texts)), [len(x) for x in texts])
        # A line may consist of characters that the tokenizer drops.
        sentences = np.bincount(document[length > 0])
        sentences = sentences[sentences > 0]
        check_documents(len(sentences), self._recipe.source)
        return pretraining.TokenizedDocuments(
            ids,
            ends[length > 0],
            np.cumsum(sentences),
        )

    def count_documents(
        self,
        documents: pretraining.TokenizedDocuments,
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

    def write_shard(self, shard: Shard) -> dict:
        """Writes a shard; returns `{"records", "bytes", "sha256"}`.

        Raises:
            UserError: the disk is full or cannot be written.
        """
        return writer.write_shard(
            shard.path,
            shard.number,
            shard.parts,
            self.shard_key(shard.number),
        )

    def shard_key(self, number: int) -> str:
        """Seed of the order of a shard."""
        return f"{self._recipe.settings.random_seed}/shard/{number}"


def section_name(number: int, section: int) -> str:
    """Name of a section of a partition's records, part of a seed."""
    return f"{number}.{section}"


def section_path(partition: Partition, section: int) -> str:
    """File of a section of a partition's records."""
    return f"{partition.part_path}.{section}"


def check_documents(count: int, source: str) -> None:
    """Checks that a corpus has enough documents for random next sentences.

    Raises:
        UserError: fewer than two documents.
    """
    if count < 2:
        raise UserError(
            f"{count} document{'s' * (not count)} with text",
            path=source,
            expected="at least 2: a random next sentence comes from another "
            "document",
            fix="put a blank line between documents; prepare_corpus.py makes "
            "a corpus of raw text",
        )


def count_continued(texts: list[list[str]]) -> int:
    """Counts the lines that continue the one before, as in wrapped prose.

    They start with a lower-case letter, and the one before ends without the
    end of a sentence. In a corpus of one sentence per line there are few.

    Args:
        texts: documents, each as its lines.
    """
    return sum(
        line[:1].islower() and (before[-1:].isalnum() or before[-1:] == ",")
        for text in texts
        for before, line in itertools.pairwise(text)
    )


def shares(counts: dict[str, int], max_seq_length: int) -> dict[str, float]:
    """Shares that describe the records, each from 0 to 1."""
    predictions = counts["predictions"]
    return {
        "unknown": counts["unknown_tokens"] / counts["tokens"],
        "fill": counts["row_tokens"] / (counts["records"] * max_seq_length),
        "predicted": predictions / counts["row_tokens"],
        "masked": counts["predictions_masked"] / predictions,
        "random": counts["predictions_random"] / predictions,
        "random_next": counts["random_next"] / counts["instances"],
        "continued": counts["continued_lines"] / counts["sentences"],
    }


def warnings(counts: dict[str, int], settings: InstanceSettings) -> list[str]:
    """Warnings about a corpus that looks wrong, one line each."""
    share = shares(counts, settings.max_seq_length)
    per_document = counts["sentences"] / counts["documents"]
    found = []
    if share["unknown"] > 0.01:
        found.append(
            f"{share['unknown']:.1%} of the tokens are [UNK]: does the "
            "vocabulary match the language and the casing?"
        )
    layout = []
    if per_document < 2:
        layout.append(f"{per_document:.1f} lines per document")
    if share["continued"] > 0.25:
        layout.append(
            f"{share['continued']:.0%} of the lines continue the one before"
        )
    if share["random_next"] > 0.65:
        layout.append(
            f"{share['random_next']:.0%} of the pairs are random (usual: 50 %)"
        )
    is_empty = share["fill"] < 0.5
    if is_empty and layout:
        layout.append(f"the records are {share['fill']:.0%} full")
    elif is_empty:
        better = "--pack_sequences"
        if settings.pack_sequences:
            better = "a larger --max_predictions_per_seq"
        found.append(
            f"the records are {share['fill']:.0%} full: a smaller "
            f"--max_seq_length or {better} wastes less"
        )
    if layout:
        found.append(
            f"{', '.join(layout)}: the corpus needs one sentence per line and "
            "a blank line between documents; if it is raw text, run "
            "prepare_corpus.py first"
        )
    if share["predicted"] < 0.8 * settings.masked_lm_prob:
        found.append(
            f"{share['predicted']:.1%} of the tokens are predicted instead of "
            f"{settings.masked_lm_prob:.0%}: raise --max_predictions_per_seq"
        )
    return found
