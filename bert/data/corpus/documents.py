"""A corpus: text files, one sentence per line, blank lines between documents.

Documents are distributed over partitions, the units of parallel work. The
partition of a document depends only on the seed, the numbers of documents and
partitions, and the index of the document in the corpus.
"""

import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from bert.common import storage, text_lines
from bert.common.errors import UserError
from bert.common.formats import endings
from bert.common.progress import Progress

PARTITION_BYTES = 4_000_000  # maximum text of one partition, approximately
# Partitions of a small corpus are smaller, so that all processes get some.
_MANY = 64  # number of partitions of a small corpus
_SMALLER = 4  # maximum factor by which partitions are smaller
MAX_DOCUMENT_MB = 64
_HELD_BYTES = 128_000_000  # text of a batch, which is held in memory
_JOINED = 1_000_000  # characters of a document that are joined as it is read
_SAMPLED_FILES = 10
_SAMPLED_LINES = 500  # lines of each sampled file


class Batch(NamedTuple):
    """Files of a corpus, the unit of work of `distribute`.

    Attributes:
        files: list of str. Consecutive files of the corpus.
        documents: list of int. Number of documents of each file.
        num_bytes: int. UTF-8 bytes of their lines.
        first: int. Index of the first document in the corpus.
        num_documents: int. Number of documents in the corpus.
        num_partitions: int. Number of partitions of the corpus.
    """

    files: list[str]
    documents: list[int]
    num_bytes: int
    first: int
    num_documents: int
    num_partitions: int


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Files of a corpus, and the amount of text in them.

    Attributes:
        files: list of str. Paths, in the order in which they are read.
        documents: int64 [len(files)]. Number of documents of each file.
        sizes: int64 [len(files)]. UTF-8 bytes of the lines of each file.
    """

    files: list[str]
    documents: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, files: list[str], counts: Iterable) -> "Corpus":
        """Returns a corpus from `count_documents` of each file."""
        documents, sizes = np.array([*counts], np.int64).T
        return cls(files, documents, sizes)

    @property
    def num_documents(self) -> int:
        """Number of documents in all files."""
        return int(self.documents.sum())

    @property
    def num_bytes(self) -> int:
        """Number of UTF-8 bytes in all files."""
        return int(self.sizes.sum())

    @property
    def num_partitions(self) -> int:
        """Number of partitions; each has at least two documents."""
        size = min(
            PARTITION_BYTES, max(_smallest_partition(), self.num_bytes // _MANY)
        )

        # A random next sentence needs a second document in the partition.
        by_size = -(-self.num_bytes // size)
        return max(1, min(by_size, self.num_documents // 2))

    @property
    def batches(self) -> list[Batch]:
        """Batches of all files, with at least one file each."""
        starts = np.cumsum(self.documents) - self.documents
        numbers = (np.cumsum(self.sizes) - self.sizes) // _HELD_BYTES
        _, firsts = np.unique(numbers, return_index=True)
        return [
            Batch(
                self.files[a:b],
                self.documents[a:b].tolist(),
                int(self.sizes[a:b].sum()),
                int(starts[a]),
                self.num_documents,
                self.num_partitions,
            )
            for a, b in itertools.pairwise([*firsts, len(self.files)])
        ]


def _smallest_partition() -> int:
    return max(1, PARTITION_BYTES // _SMALLER)


def most_partitions(num_bytes: int) -> int:
    """Returns the largest number of partitions of some bytes of text."""
    return -(-num_bytes // _smallest_partition())


def partitions_of(
    first: int, count: int, num_documents: int, num_partitions: int, seed: int
) -> np.ndarray:
    """Returns the partitions of consecutive documents.

    The documents are permuted, and each partition takes an equal part of the
    permutation.

    Args:
        first: int. Index of the first document in the corpus.
        count: int. Number of documents.
        num_documents: int. Number of documents in the corpus.
        num_partitions: int. Number of partitions of the corpus.
        seed: int. Seed of the permutation.

    Returns:
        int64 [count]. Partition numbers.
    """
    numbers = np.arange(first, first + count)
    ranks = permute(numbers, num_documents, f"{seed}/documents")
    return ranks * num_partitions // num_documents


def check_names(files: list[str]) -> None:
    """Rejects files of a corpus that have JSON lines.

    Raises:
        UserError: The name of a file means JSON or JSON lines.
    """
    for path in files:
        if endings.format_of(path) == "json":
            raise UserError(
                "is JSON lines, by its name",
                path=path,
                expected="one sentence per line",
                fix="make a corpus with prepare_corpus.py",
            )


def permute(numbers: np.ndarray, size: int, key: str) -> np.ndarray:
    """Permutes the numbers below `size`, without storing the permutation.

    A Feistel network permutes the numbers below the next power of 4. Results
    of at least `size` are permuted again until they are smaller (Black and
    Rogaway 2002, "Ciphers with arbitrary finite domains").

    Args:
        numbers: int64 [N]. Numbers below `size`.
        size: int. Size of the permutation.
        key: str. Seed of the permutation.

    Returns:
        int64 [N]. The permuted numbers.
    """
    half = np.uint64(max(1, -(-(size - 1).bit_length() // 2)))
    mask = (np.uint64(1) << half) - np.uint64(1)
    keys = np.frombuffer(hashlib.sha512(key.encode()).digest(), "<u8")

    values = numbers.astype(np.uint64)
    outside = np.arange(len(values))

    while len(outside):
        left, right = values[outside] >> half, values[outside] & mask
        for round_key in keys:
            left, right = right, left ^ (_mix(right + round_key) & mask)
        values[outside] = left << half | right
        outside = outside[values[outside] >= size]
    return values.astype(np.int64)


def count_documents(
    path: str, max_document_mb: int = MAX_DOCUMENT_MB
) -> tuple[int, int]:
    """Counts the documents of a file, and their bytes; checks the file.

    Args:
        path: str. The file.
        max_document_mb: int. Maximum size of a document, see `documents`.

    Raises:
        UserError: The file cannot be read or has errors, see `documents`.
    """
    count = size = 0
    for text in documents(path, None, max_document_mb):
        count += 1
        size += len(text)
    return count, size


def follow(
    description: str, files: list[str]
) -> Iterator[tuple[str, Callable[[int], None]]]:
    """Yields files and shows the progress of reading them.

    Args:
        description: str. Name of the work.
        files: list of str. Paths of the files.

    Yields:
        (path, on_read). A file, and a function to call with the number of its
        bytes that have been read.

    Raises:
        UserError: A file cannot be read.
    """
    sizes, done = [], 0
    for path in files:
        try:
            sizes.append(storage.size(path))
        except OSError as error:
            raise text_lines.unreadable(path, error) from None

    progress = Progress(description, sum(sizes) / 1e6, "MB")
    for path, size in zip(files, sizes, strict=True):

        def on_read(position, done=done):
            progress.update((done + position) / 1e6)

        yield path, on_read
        done += size
        progress.update(done / 1e6)


def documents(
    path: str,
    on_read: Callable[[int], None] | None = None,
    max_document_mb: int = MAX_DOCUMENT_MB,
) -> Iterator[bytes]:
    """Yields the documents of a file, `.gz` or plain.

    Args:
        path: str. The file.
        on_read: callable or None. Called with the number of bytes read so far.
        max_document_mb: int. Maximum size of a document in megabytes.

    Yields:
        bytes. A document in UTF-8: its stripped lines, each with a newline.

    Raises:
        UserError: The file cannot be read, is not UTF-8, has lone carriage
            returns as line ends, or has a document that is too long.
    """
    for start, text in _split(path, on_read, max_document_mb):
        yield _checked(text, path, start, max_document_mb)


def sample_lines(files: list[str]) -> list[str]:
    """Returns a sample: the first lines of some of the files.

    Args:
        files: list of str. Paths, `.gz` or plain. Pipes are skipped, as they
            can be read only once.

    Raises:
        UserError: A file cannot be read or is not UTF-8.
    """
    lines: list[str] = []

    # Files are taken from the whole list, as the first may be similar.
    regular = list(filter(storage.is_file, files))
    for path in regular[:: len(regular) // _SAMPLED_FILES + 1]:
        numbered = itertools.islice(text_lines.lines(path), _SAMPLED_LINES)
        lines += filter(None, (line.strip() for _, line in numbered))
    return lines


def _split(
    path: str, on_read: Callable[[int], None] | None, limit: int
) -> Iterator[tuple[int, str]]:
    """Yields the first line and the text of each document, see `documents`."""
    document: list[str] = []
    start = size = 0  # first line, and characters that are not joined yet
    for number, line in text_lines.lines(path, on_read):
        line = line.strip()
        if line:
            start = start if document else number
            document.append(line)
            size += len(line)
        elif document:
            yield start, "\n".join([*document, ""])
            document, size = [], 0

        # Many short strings would need ten times the memory.
        if size > _JOINED:
            document, size = ["\n".join(document)], 0
            _checked(document[0], path, start, limit)

    if document:
        yield start, "\n".join([*document, ""])


def _checked(text: str, path: str, start: int, limit: int) -> bytes:
    """Encodes a document, or its beginning, and checks its size."""
    content = text.encode()
    if len(content) > limit * 1_000_000:
        raise UserError(
            f"a document of more than {limit} MB begins here",
            path=path,
            line=start,
            expected="blank lines between documents",
            fix="add them, or pass a larger --max_document_mb",
        )
    return content


def distribute(
    batch: Batch, seed: int, max_document_mb: int = MAX_DOCUMENT_MB
) -> Iterator[list[bytes]]:
    """Reads the files of a batch, and distributes their documents.

    Args:
        batch: Batch. The files.
        seed: int. Seed of the permutation that distributes the documents.
        max_document_mb: int. Maximum size of a document, see `documents`.

    Yields:
        list of bytes. The documents of each partition, to be joined and read
        with `split_partition`; one list for each 128 MB of text.

    Raises:
        UserError: A file has changed since its documents were counted.
    """
    held: list[list[bytes]] = [[] for _ in range(batch.num_partitions)]
    held_bytes, first = 0, batch.first

    for path, count in zip(batch.files, batch.documents, strict=True):
        of_corpus = batch.num_documents, batch.num_partitions
        numbers = partitions_of(first, count, *of_corpus, seed).tolist()
        first += count

        texts = documents(path, None, max_document_mb)
        for number, text in itertools.zip_longest(numbers, texts):
            if number is None or text is None:
                raise UserError("has changed while it was read", path=path)
            held[number].append(text)
            held_bytes += len(text)
            if held_bytes > _HELD_BYTES:
                yield _take(held)
                held_bytes = 0

    if held_bytes:
        yield _take(held)


def split_partition(content: bytes) -> list[list[str]]:
    """Splits documents, each followed by a blank line, into lists of lines."""
    documents = content.decode().split("\n\n")[:-1]
    return [document.split("\n") for document in documents]


def _take(held: list[list[bytes]]) -> list[bytes]:
    """Returns the documents of each partition, and clears their lists."""
    portions = []
    for texts in held:
        portions.append(b"".join(b"%b\n" % text for text in texts))
        texts.clear()
    return portions


def _mix(x: np.ndarray) -> np.ndarray:
    """Applies the finalizer of splitmix64 (Steele et al. 2014), uint64 [N]."""
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)
