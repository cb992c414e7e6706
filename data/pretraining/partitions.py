"""One bucket of the corpus: text -> a part of the records, and its counts.

A bucket's records depend on the bucket, the settings and the seed alone, not
on the process or the machine that makes them.
"""

import dataclasses
import math
import random
from collections.abc import Callable, Iterator

import numpy as np

from common.errors import UserError
from data.corpus import documents as corpus
from data.pretraining import instances as pretraining
from data.pretraining import masking, packing
from data.pretraining.settings import InstanceSettings
from data.text import fast_tokenization, vocabulary, word_boundaries
from data.text.settings import Text

_ENCODED_AT_ONCE = 1024  # rows: larger batches only take more memory


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How text becomes records.

    Attributes:
        text: the vocabulary and the casing.
        settings: of the instances.
        source: the corpus' files, for messages.
    """

    text: Text
    settings: InstanceSettings
    source: str


@dataclasses.dataclass(frozen=True)
class Bucket:
    """A unit of work.

    Attributes:
        number: of the bucket.
        text_path: where its documents are.
        part_path: where its records go.
        copies: how often it is gone through; of the last copy, the share
            behind the point is made.
    """

    number: int
    text_path: str
    part_path: str
    copies: float


class Worker:
    """Makes the parts of buckets, one after another.

    Args:
        recipe: how text becomes records.
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
        self, bucket: Bucket, on_copy: Callable[[], None] = lambda: None
    ) -> dict[str, int]:
        """Writes a bucket's records, all copies shuffled together.

        Args:
            bucket: what to make.
            on_copy: called after each copy of the bucket's instances.

        Returns:
            counts, as `count_documents` and `count_instances` name them, and
            `records`.

        Raises:
            UserError: the bucket has fewer than two documents with text.
        """
        from data.records import writer

        documents = self._read_documents(bucket.text_path)
        counts = count_documents(
            documents, self._tokenizer.vocab[vocabulary.UNK], self._masking.size
        )
        serialized: list[bytes] = []
        for copy in range(math.ceil(bucket.copies)):
            instances = pretraining.bucket_instances(
                documents,
                copy,
                bucket.number,
                self._settings,
                self._masking,
                min(1.0, bucket.copies - copy),
            )
            add_counts(
                counts, count_instances(instances, self._masking.mask_id)
            )
            for arrays in self._rows(instances, f"{bucket.number}/{copy}"):
                serialized += writer.encode_examples(arrays)
            on_copy()
        seed = f"{self._settings.random_seed}/{bucket.number}/shuffle"
        random.Random(seed).shuffle(serialized)
        writer.write_records(bucket.part_path, serialized)
        return {**counts, "records": len(serialized)}

    def _rows(
        self, instances: list[pretraining.Instance], place: str
    ) -> Iterator[dict[str, np.ndarray]]:
        """Arrays of some rows at a time; `place` decides what is packed."""
        settings = self._settings
        rows, to_arrays = instances, pretraining.to_arrays
        if settings.pack_sequences:
            rng = random.Random(f"{settings.random_seed}/{place}/pack")
            rows = packing.pack(instances, settings, rng)
            to_arrays = packing.to_arrays
        for start in range(0, len(rows), _ENCODED_AT_ONCE):
            yield to_arrays(rows[start : start + _ENCODED_AT_ONCE], settings)

    def _read_documents(self, path: str) -> list[pretraining.Document]:
        texts = list(corpus.documents(path))
        lines = [line for text in texts for line in text]
        ids = iter(self._tokenizer.ids_of_lines(lines))
        documents = [[next(ids) for _ in text] for text in texts]
        # A line may hold nothing but what the tokenizer drops.
        documents = [list(filter(None, document)) for document in documents]
        documents = [document for document in documents if document]
        check_documents(len(documents), self._source)
        return documents


def check_documents(count: int, source: str) -> None:
    """Refuses a corpus in which there is no other document.

    Raises:
        UserError: fewer than two.
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
    """Adds numbers of the same names."""
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count


def count_documents(
    documents: list, unknown_id: int, vocab_size: int
) -> dict[str, int]:
    """Documents, sentences and tokens of a bucket.

    Args:
        documents: with ids that may be marked (`word_boundaries`).
        unknown_id: of `[UNK]`.
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


def count_instances(
    instances: list[pretraining.Instance], mask_id: int
) -> dict[str, int]:
    """What was masked, and how, and how long the rows are."""
    masked = replaced = total = 0
    for instance in instances:
        ids = instance.ids
        total += len(instance.masked_lm_ids)
        for place, was in zip(
            instance.masked_lm_positions, instance.masked_lm_ids
        ):
            masked += ids[place] == mask_id
            replaced += ids[place] != mask_id and ids[place] != was
    return {
        "instances": len(instances),
        "random_next": sum(x.is_random_next for x in instances),
        "row_tokens": sum(len(x.ids) for x in instances),
        "predictions": total,
        "predictions_masked": int(masked),
        "predictions_random": int(replaced),
    }


def shares(counts: dict[str, int], max_seq_length: int) -> dict[str, float]:
    """What of the records is what, each from 0 to 1."""
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
    """What looks wrong in a corpus, one line each, with what to look at."""
    share = shares(counts, settings.max_seq_length)
    per_document = counts["sentences"] / counts["documents"]
    found = []
    if share["unknown"] > 0.01:
        found.append(
            f"{share['unknown']:.1%} of the tokens are [UNK]: is it the "
            "vocabulary of this language and casing?"
        )
    if per_document < 2:
        found.append(
            f"{per_document:.1f} sentences a document: blank lines belong "
            "between documents, not between sentences"
        )
    if share["random_next"] > 0.65:
        found.append(
            f"{share['random_next']:.0%} of the pairs are random (50 % is "
            "usual): are there documents of one sentence?"
        )
    if share["fill"] < 0.5:
        found.append(
            f"the rows are {share['fill']:.0%} full: a smaller "
            "--max_seq_length or --pack_sequences wastes less"
        )
    if share["predicted"] < 0.8 * settings.masked_lm_prob:
        found.append(
            f"{share['predicted']:.1%} of the tokens are predicted, "
            f"{settings.masked_lm_prob:.0%} are wanted: raise "
            "--max_predictions_per_seq"
        )
    return found
