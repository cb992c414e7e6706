"""Records and counts of one partition of the corpus.

They depend on the partition, the settings and the seed alone, not on the
process or the machine that makes them.
"""

import dataclasses
import math
import random
from collections.abc import Callable

from common.errors import UserError
from data.corpus import documents as corpus
from data.pretraining import instances as pretraining
from data.pretraining import masking, records
from data.pretraining.settings import InstanceSettings
from data.text import fast_tokenization, vocabulary, word_boundaries
from data.text.settings import Text


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Settings that all partitions share.

    Attributes:
        text: vocabulary and casing.
        settings: settings of the instances.
        source: files of the corpus, for messages.
    """

    text: Text
    settings: InstanceSettings
    source: str


@dataclasses.dataclass(frozen=True)
class Partition:
    """A partition of the corpus: the unit of work.

    Attributes:
        number: number of the partition, from 0.
        text_path: file of its documents.
        part_path: file for its records.
        passes: number of passes over it; a fraction is the share of the
            documents that the last pass uses.
    """

    number: int
    text_path: str
    part_path: str
    passes: float


class Worker:
    """Makes the records of partitions, one after another.

    Args:
        recipe: settings of all partitions.
    """

    def __init__(self, recipe: Recipe):
        self._settings, self._source = recipe.settings, recipe.source
        kind = fast_tokenization.FastTokenizer
        if recipe.settings.word_boundaries:
            kind = word_boundaries.SegmentedTokenizer
        text = recipe.text
        self._tokenizer = kind(
            text.vocab_file, text.do_lower_case, text.strip_accents
        )
        self._masking = masking.Vocabulary.of(self._tokenizer.vocab)

    def make_part(
        self, partition: Partition, on_pass: Callable[[], None] = lambda: None
    ) -> dict[str, int]:
        """Writes the records of a partition, all passes shuffled together.

        Args:
            partition: the partition.
            on_pass: called after each pass.

        Returns:
            Counts with the names of `count_documents` and
            `records.make_records`, and `records`.

        Raises:
            UserError: the partition has fewer than two documents with text.
        """
        from data.records import writer

        documents = self._read_documents(partition.text_path)
        counts = count_documents(
            documents, self._tokenizer.vocab[vocabulary.UNK], self._masking.size
        )
        tokenized = pretraining.TokenizedDocuments.of(documents)
        serialized: list[bytes] = []
        for number in range(math.ceil(partition.passes)):
            encoded, more = records.make_records(
                tokenized,
                number,
                partition.number,
                self._settings,
                self._masking,
                min(1.0, partition.passes - number),
            )
            add_counts(counts, more)
            serialized += encoded.to_list()
            on_pass()
        seed = f"{self._settings.random_seed}/{partition.number}/shuffle"
        random.Random(seed).shuffle(serialized)
        writer.write_records(partition.part_path, serialized)
        return {**counts, "records": len(serialized)}

    def _read_documents(self, path: str) -> list[list[list[int]]]:
        texts = list(corpus.documents(path))
        lines = [line for text in texts for line in text]
        ids = iter(self._tokenizer.ids_of_lines(lines))
        documents = [[next(ids) for _ in text] for text in texts]
        # A line may consist of characters that the tokenizer drops.
        documents = [list(filter(None, document)) for document in documents]
        documents = [document for document in documents if document]
        check_documents(len(documents), self._source)
        return documents


def check_documents(count: int, source: str) -> None:
    """Checks that a corpus has enough documents for random next sentences.

    Raises:
        UserError: fewer than two documents.
    """
    if count < 2:
        raise UserError(
            f"{count} document with text",
            path=source,
            expected="at least 2: a random next sentence comes from another "
            "document",
            fix="put a blank line between documents",
        )


def add_counts(counts: dict[str, int], more: dict[str, int]) -> None:
    """Adds `more` to `counts`, by name."""
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count


def count_documents(
    documents: list, unknown_id: int, vocab_size: int
) -> dict[str, int]:
    """Counts the documents, sentences and tokens of a partition.

    Args:
        documents: documents; their ids may be marked (`word_boundaries`).
        unknown_id: id of `[UNK]`.
        vocab_size: V, which is added to marked ids.
    """
    unknown = (unknown_id, unknown_id + vocab_size)
    sentences = [sentence for document in documents for sentence in document]
    return {
        "documents": len(documents),
        "sentences": len(sentences),
        "tokens": sum(map(len, sentences)),
        "unknown_tokens": sum(s.count(i) for s in sentences for i in unknown),
    }


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
    if per_document < 2:
        found.append(
            f"{per_document:.1f} sentences per document: put blank lines "
            "between documents, not between sentences"
        )
    if share["random_next"] > 0.65:
        found.append(
            f"{share['random_next']:.0%} of the pairs are random (usual: "
            "50 %): are there documents of one sentence?"
        )
    if share["fill"] < 0.5:
        found.append(
            f"the records are {share['fill']:.0%} full: a smaller "
            "--max_seq_length or --pack_sequences wastes less"
        )
    if share["predicted"] < 0.8 * settings.masked_lm_prob:
        found.append(
            f"{share['predicted']:.1%} of the tokens are predicted instead of "
            f"{settings.masked_lm_prob:.0%}: raise --max_predictions_per_seq"
        )
    return found
