"""A corpus: text files, one sentence per line, blank lines between documents.

Documents are distributed over partitions, the units of work. The partition of
a document depends on the seed, the number of documents and of partitions, and
the document's number in the corpus only.
"""

import dataclasses
import gzip
import hashlib
import itertools
import zlib
from collections.abc import Callable, Iterator

import numpy as np

from bert.common import storage, text_lines
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.common.progress import Progress

PARTITION_BYTES = 4_000_000  # maximum text of one partition, approximately
# In a small corpus partitions are smaller, so that all processes have some.
_MANY = 64  # partitions
_SMALLER = 4  # times at most
MAX_DOCUMENT_MB = 64
_FLUSH_BYTES = 128_000_000  # text that is buffered in memory
_BLOCK = 1 << 20  # bytes that are read at once
_SAMPLED_FILES = 10
_SAMPLED_LINES = 500  # of each of them


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Files of a corpus, and the amount of text in them.

    Attributes:
        files: paths, in the order in which they are read.
        documents: int64 [len(files)], number of documents of each file.
        sizes: int64 [len(files)], UTF-8 bytes of their lines.
    """

    files: list[str]
    documents: np.ndarray
    sizes: np.ndarray

    @property
    def num_documents(self) -> int:
        """Number of documents of all files."""
        return int(self.documents.sum())

    @property
    def num_bytes(self) -> int:
        """Bytes of text of all files."""
        return int(self.sizes.sum())

    @property
    def num_partitions(self) -> int:
        """Number of partitions; each has at least two documents."""
        smallest = max(1, PARTITION_BYTES // _SMALLER)
        size = min(PARTITION_BYTES, max(smallest, self.num_bytes // _MANY))

        # Two documents each: a random next sentence is from another one.
        by_size = -(-self.num_bytes // size)
        return max(1, min(by_size, self.num_documents // 2))

    def partitions(self, seed: int, first: int, count: int) -> np.ndarray:
        """Computes the partition of some documents.

        The documents are permuted, and each partition takes an equal share of
        the permutation.

        Args:
            seed: seed of the permutation.
            first: number of the first of these documents in the corpus.
            count: number of these documents.

        Returns:
            int64 [count], partition numbers.
        """
        numbers = np.arange(first, first + count)
        ranks = permute(numbers, self.num_documents, f"{seed}/documents")
        return ranks * self.num_partitions // self.num_documents


def check_names(files: list[str]) -> None:
    """Rejects files of a corpus that have JSON lines.

    Raises:
        UserError: one has, by its name.
    """
    for path in filter(json_files.is_json, files):
        raise UserError(
            "is JSON lines, by its name",
            path=path,
            expected="one sentence per line",
            fix="make a corpus with prepare_corpus.py",
        )


def permute(numbers: np.ndarray, size: int, key: str) -> np.ndarray:
    """Permutes the numbers below `size`, without a table of them.

    A Feistel network permutes the numbers below the next power of 4; results
    from `size` on are permuted again until they are below it (Black and
    Rogaway 2002, "Ciphers with arbitrary finite domains").

    Args:
        numbers: int64 [N], some of the numbers below `size`.
        size: number of the permuted numbers.
        key: seed of the permutation.

    Returns:
        int64 [N], their images; different for different numbers.
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
        files: paths of the corpus.
        max_document_mb: as for `documents`.

    Returns:
        the corpus.

    Raises:
        UserError: as for `documents`.
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
    what: str, files: list[str]
) -> Iterator[tuple[str, Callable[[int], None]]]:
    """Yields files, and shows the progress of reading them.

    Args:
        what: name of the work.
        files: the files.

    Yields:
        a file, and a function to call with the bytes read of it so far.

    Raises:
        UserError: a file cannot be read.
    """
    sizes, done = [], 0
    for path in files:
        try:
            sizes.append(storage.size(path))
        except OSError as error:
            raise text_lines.unreadable(path, error) from None

    progress = Progress(what, sum(sizes) / 1e6, "MB")
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
    open_file: Callable = storage.open_file,
) -> Iterator[bytes]:
    """Yields the documents of a file, `.gz` or plain.

    Args:
        path: the file.
        on_read: called with the bytes read so far.
        max_document_mb: megabytes of the longest document.
        open_file: opens a path in a mode.

    Yields:
        a document as UTF-8: its stripped lines, each with a newline.

    Raises:
        UserError: the file cannot be read, is not UTF-8, has lone carriage
            returns as line ends, or a document that is too long.
    """
    try:
        with open_file(path, "rb") as file:
            for text in _split(path, file, on_read, max_document_mb):
                yield text.encode()
    except (OSError, EOFError, zlib.error) as error:
        raise text_lines.unreadable(path, error) from None


def sample_lines(files: list[str]) -> list[str]:
    """Reads the first lines of some files, to look at.

    Args:
        files: paths, `.gz` or plain. A pipe is not read, as that would
            take the lines away.

    Raises:
        UserError: a file cannot be read, or is not UTF-8.
    """
    lines: list[str] = []

    # Files from the whole list, as the first ones may be alike.
    regular = list(filter(storage.is_file, files))
    for path in regular[:: len(regular) // _SAMPLED_FILES + 1]:
        numbered = itertools.islice(text_lines.lines(path), _SAMPLED_LINES)
        lines += filter(None, (line.strip() for _, line in numbered))
    return lines


def _split(
    path: str, file, on_read: Callable[[int], None] | None, limit: int
) -> Iterator[str]:
    """Yields the documents, each as stripped lines with newlines."""
    document: list[str] = []
    start = 1  # line where it begins
    for first, raw in _blocks(path, file, on_read):
        lines = text_lines.decode_block(raw, path, first)
        for number, line in enumerate(lines, first):
            line = line.strip()
            if line:
                if not document:
                    start = number
                document.append(line)
            elif document:
                yield "\n".join([*document, ""])
                document = []

        # Joined, because many short strings need ten times the memory.
        if document:
            document = ["\n".join(document)]
            if len(document[0]) > limit * 1_000_000:
                raise UserError(
                    f"a document of more than {limit} MB begins here",
                    path=path,
                    line=start,
                    expected="blank lines between documents",
                    fix="add them, or pass a larger --max_document_mb",
                )

    if document:
        yield "\n".join([*document, ""])


def _blocks(
    path: str, file, on_read: Callable[[int], None] | None
) -> Iterator[tuple[int, bytes]]:
    """Yields whole lines: the number of the first of them, their bytes."""
    is_packed = path.endswith(".gz")
    text = gzip.GzipFile(fileobj=file) if is_packed else file
    held, first, size = b"", 1, 0
    while block := text.read(_BLOCK):
        size += len(block)
        if is_packed:
            text_lines.check_ratio(size, file, path, first)

        # A line that is longer than a block is held until it ends.
        held += block
        end = held.rfind(b"\n") + 1
        if not end:
            text_lines.check(held, path, first)
            continue
        yield first, held[:end]

        first += held.count(b"\n")
        held = held[end:]
        if on_read:
            on_read(file.tell())

    if held:
        yield first, held


def write_partitions(
    corpus: Corpus,
    seed: int,
    paths: list[str],
    max_document_mb: int = MAX_DOCUMENT_MB,
) -> None:
    """Writes the documents of each partition to a separate file.

    Args:
        corpus: from `scan`.
        seed: seed of the permutation that distributes the documents.
        paths: file of each partition; none exists.
        max_document_mb: as for `documents`.

    Raises:
        UserError: a file has changed since the scan.
        OSError: the disk is full.
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

            # No file stays open: a system allows fewer than there may be.
            if held_bytes > _FLUSH_BYTES:
                _append(held, paths)
                done += held_bytes
                held_bytes = 0
                progress.update(done / 1e6)
    _append(held, paths)


def read_partition(path: str) -> list[list[str]]:
    """Reads the documents that `write_partitions` wrote, each as its lines."""
    with storage.open_file(path, "rb") as file:
        return split_partition(file.read())


def split_partition(content: bytes) -> list[list[str]]:
    """Splits documents, each with a blank line after it, into their lines."""
    documents = content.decode().split("\n\n")[:-1]
    return [document.split("\n") for document in documents]


def number_of(files: list[str]) -> str:
    """Formats the number of files for a message: `1 file`, `1,200 files`."""
    return "1 file" if len(files) == 1 else f"{len(files):,} files"


def _append(held: dict[int, list[bytes]], paths: list[str]) -> None:
    for number in sorted(held):
        with storage.open_file(paths[number], "ab") as file:
            file.write(b"\n".join([*held[number], b""]))
    held.clear()


def _mix(x: np.ndarray) -> np.ndarray:
    """The finalizer of splitmix64 (Steele et al. 2014), uint64 [N]."""
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)
