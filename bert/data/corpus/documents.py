"""A corpus: text files, one sentence per line, blank lines between documents.

Documents are distributed over partitions, the units of parallel work. The
partition of a document depends only on the seed, the numbers of documents and
partitions, and the index of the document in the corpus.
"""

import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Iterator

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
_FLUSH_BYTES = 128_000_000  # text that is buffered in memory
_SAMPLED_FILES = 10
_SAMPLED_LINES = 500  # lines of each sampled file


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
        smallest = max(1, PARTITION_BYTES // _SMALLER)
        size = min(PARTITION_BYTES, max(smallest, self.num_bytes // _MANY))

        # A random next sentence needs a second document in the partition.
        by_size = -(-self.num_bytes // size)
        return max(1, min(by_size, self.num_documents // 2))

    def partitions(self, seed: int, first: int, count: int) -> np.ndarray:
        """Returns the partitions of consecutive documents.

        The documents are permuted, and each partition takes an equal part of
        the permutation.

        Args:
            seed: int. Seed of the permutation.
            first: int. Index of the first document in the corpus.
            count: int. Number of documents.

        Returns:
            int64 [count]. Partition numbers.
        """
        numbers = np.arange(first, first + count)
        ranks = permute(numbers, self.num_documents, f"{seed}/documents")
        return ranks * self.num_partitions // self.num_documents


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


def scan(files: list[str], max_document_mb: int = MAX_DOCUMENT_MB) -> Corpus:
    """Reads every file once, checks it and counts its documents.

    Args:
        files: list of str. Paths of the corpus.
        max_document_mb: int. Maximum size of a document, see `documents`.

    Returns:
        Corpus.

    Raises:
        UserError: A file cannot be read or has errors, see `documents`.
    """
    counts, sizes = [], []
    for path, on_read in follow("reading", files):
        counts.append(0)
        sizes.append(0)
        for text in documents(path, on_read, max_document_mb):
            counts[-1] += 1
            sizes[-1] += len(text)

    return Corpus(files, np.array(counts), np.array(sizes))


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
    open_file: Callable | None = None,
) -> Iterator[bytes]:
    """Yields the documents of a file, `.gz` or plain.

    Args:
        path: str. The file.
        on_read: callable or None. Called with the number of bytes read so far.
        max_document_mb: int. Maximum size of a document in megabytes.
        open_file: callable or None. Opens a path in a mode. Default: None,
            `storage.open_file`.

    Yields:
        bytes. A document in UTF-8: its stripped lines, each with a newline.

    Raises:
        UserError: The file cannot be read, is not UTF-8, has lone carriage
            returns as line ends, or has a document that is too long.
    """
    with text_lines.opened(path, open_file=open_file) as file:
        for start, text in _split(path, file, on_read, max_document_mb):
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
    path: str, file, on_read: Callable[[int], None] | None, limit: int
) -> Iterator[tuple[int, str]]:
    """Yields the first line and the text of each document, see `documents`."""
    document: list[str] = []
    start = 1  # first line of the document
    for first, _, raw in text_lines.blocks(
        text_lines.Span(path), file, on_read
    ):
        if not raw.endswith(b"\n"):
            text_lines.check(raw, path, first)
        lines = text_lines.decode_block(raw, path, first)
        for number, line in enumerate(lines, first):
            line = line.strip()
            if line:
                if not document:
                    start = number
                document.append(line)
            elif document:
                yield start, "\n".join([*document, ""])
                document = []

        # Joined, because many short strings would need ten times the memory.
        if document:
            document = ["\n".join(document)]
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


def write_partitions(
    corpus: Corpus,
    seed: int,
    paths: list[str],
    max_document_mb: int = MAX_DOCUMENT_MB,
) -> None:
    """Writes the documents of each partition to a separate file.

    Args:
        corpus: Corpus. Result of `scan`.
        seed: int. Seed of the permutation that distributes the documents.
        paths: list of str. New file of each partition.
        max_document_mb: int. Maximum size of a document, see `documents`.

    Raises:
        UserError: A file has changed since the scan.
        OSError: The disk is full.
    """
    held: dict[int, list[bytes]] = {}
    held_bytes = first = done = 0
    progress = Progress("partitions", corpus.num_bytes / 1e6, "MB")

    for path, count in zip(corpus.files, corpus.documents.tolist()):
        numbers = corpus.partitions(seed, first, count).tolist()
        first += count

        texts = documents(path, None, max_document_mb)
        for number, text in itertools.zip_longest(numbers, texts):
            if number is None or text is None:
                raise UserError("has changed while it was read", path=path)
            held.setdefault(number, []).append(text)
            held_bytes += len(text)

            # Files are not kept open, as systems limit the number of open ones.
            if held_bytes > _FLUSH_BYTES:
                _append(held, paths)
                done += held_bytes
                held_bytes = 0
                progress.update(done / 1e6)

    _append(held, paths)


def read_partition(path: str) -> list[list[str]]:
    """Reads a file of `write_partitions` as a list of lines per document."""
    with storage.open_file(path, "rb") as file:
        return split_partition(file.read())


def split_partition(content: bytes) -> list[list[str]]:
    """Splits documents, each followed by a blank line, into lists of lines."""
    documents = content.decode().split("\n\n")[:-1]
    return [document.split("\n") for document in documents]


def _append(held: dict[int, list[bytes]], paths: list[str]) -> None:
    for number in sorted(held):
        with storage.open_file(paths[number], "ab") as file:
            file.write(b"\n".join([*held[number], b""]))
    held.clear()


def _mix(x: np.ndarray) -> np.ndarray:
    """Applies the finalizer of splitmix64 (Steele et al. 2014), uint64 [N]."""
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)
