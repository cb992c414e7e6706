"""A corpus: text files, one sentence per line, blank lines between documents.

Documents are distributed over partitions, the units of work. The partition of
a document depends on (seed, file number, document number) only.
"""

import dataclasses
import gzip
import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator

import numpy as np

from common import limits, storage
from common.errors import UserError
from common.progress import Progress

PARTITION_BYTES = 4_000_000  # approximate text of one partition
_FLUSH_BYTES = 64_000_000  # text that is buffered in memory


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Files and sizes of a corpus.

    Attributes:
        files: paths, in the order in which they are read.
        document_bytes: int64 [documents], UTF-8 bytes of each document.
        documents_per_file: int64 [len(files)].
    """

    files: list[str]
    document_bytes: np.ndarray
    documents_per_file: np.ndarray

    @property
    def num_partitions(self) -> int:
        """Number of partitions; each has at least two documents."""
        by_size = -(-int(self.document_bytes.sum()) // PARTITION_BYTES)
        return max(1, min(by_size, len(self.document_bytes) // 2))

    def partitions(self, seed: int) -> np.ndarray:
        """Computes the partition of each document.

        Documents are ranked by a hash, and each partition takes an equal
        share of the ranks.

        Args:
            seed: seed of the hash.

        Returns:
            int64 [documents], partition numbers.
        """
        keys = np.array(
            [
                _document_key(seed, file, document)
                for file, count in enumerate(self.documents_per_file)
                for document in range(count)
            ],
            dtype=np.uint64,
        )
        ranks = np.argsort(np.argsort(keys, kind="stable"), kind="stable")
        return ranks * self.num_partitions // len(ranks)


def scan(files: list[str]) -> Corpus:
    """Reads every file once, checks it and counts its documents.

    Args:
        files: paths of the corpus.

    Returns:
        the corpus.

    Raises:
        UserError: a file cannot be read, has invalid UTF-8 or lone carriage
            returns as line ends, or the whole corpus has no document.
    """
    sizes: list[int] = []
    per_file = []
    megabytes = [_size(path) / 1e6 for path in files]
    progress, done = Progress("corpus", sum(megabytes), "MB"), 0.0
    for path, size in zip(files, megabytes, strict=True):
        before = len(sizes)

        def on_read(position, done=done):
            progress.update(done + position / 1e6)

        for document in documents(path, on_read):
            sizes.append(sum(len(line.encode()) + 1 for line in document))
        per_file.append(len(sizes) - before)
        done += size
    if not sizes:
        raise UserError(
            "no document",
            path=",".join(files),
            expected="one sentence per line, blank lines between documents",
        )
    return Corpus(files, np.array(sizes), np.array(per_file))


def documents(
    path: str, on_read: Callable[[int], None] | None = None
) -> Iterator[list[str]]:
    """Yields the documents of a file, each a list of stripped lines.

    Args:
        path: the file.
        on_read: called for every 1,000th line with the bytes read so far.

    Raises:
        UserError: as `lines`.
    """
    document: list[str] = []
    for line in lines(path, on_read):
        if line:
            document.append(line)
        elif document:
            yield document
            document = []
    if document:
        yield document


def lines(
    path: str,
    on_read: Callable[[int], None] | None = None,
    stripped: str | None = None,
    on_bad: Callable[[UserError], None] | None = None,
) -> Iterator[str]:
    """Yields the stripped lines of a text file, `.gz` or plain.

    Args:
        path: the file.
        on_read: called for every 1,000th line with the bytes read so far.
        stripped: characters to strip; None: all white space.
        on_bad: called with the error of a line of invalid UTF-8, which is
            then yielded as blank; None: the error is raised.

    Raises:
        UserError: the file cannot be read, or has invalid UTF-8 or lone
            carriage returns as line ends.
    """
    try:
        with storage.open_file(path, "rb") as file:
            is_packed = path.endswith(".gz")
            text = gzip.GzipFile(fileobj=file) if is_packed else file
            packed = file if is_packed else None
            for number, raw in limits.lines(text, path, packed):
                try:
                    line = _decode(raw, path, number)
                except UserError as error:
                    if on_bad is None:
                        raise
                    on_bad(error)
                    line = ""
                if number == 1:
                    line = _check_start(line, path)
                yield line.strip(stripped)
                if on_read and number % 1000 == 0:
                    on_read(file.tell())
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None


def write_partitions(
    corpus: Corpus, seed: int, folder: str, first: int = 0
) -> list[str]:
    """Writes the documents of each partition to a separate file.

    Args:
        corpus: from `scan`.
        seed: seed of the hash that distributes the documents.
        folder: folder of the files.
        first: number of the first partition.

    Returns:
        the path of each partition.

    Raises:
        UserError: the disk is full.
    """
    if storage.is_remote(folder):  # remote files cannot be appended to
        with tempfile.TemporaryDirectory() as here:
            paths = write_partitions(corpus, seed, here, first)
            return [storage.copy(path, folder) for path in paths]
    numbers = iter(corpus.partitions(seed))
    paths = [
        os.path.join(folder, f"partition-{i:05d}.txt")
        for i in range(first, first + corpus.num_partitions)
    ]
    held: dict[int, list[str]] = {}
    held_bytes = 0
    for path in corpus.files:
        for document in documents(path):
            text = "\n".join(document) + "\n\n"
            held.setdefault(int(next(numbers)), []).append(text)
            held_bytes += len(text)
            if held_bytes > _FLUSH_BYTES:
                _append(held, paths)
                held_bytes = 0
    _append(held, paths)
    return paths


def _size(path: str) -> int:
    try:
        return storage.size(path)
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: str, error: Exception) -> UserError:
    return UserError(
        f"cannot be read: {error}", path=path, expected="a text file"
    )


def _append(held: dict[int, list[str]], paths: list[str]) -> None:
    for number in sorted(held):
        path = paths[number]
        try:
            with open(path, "a", encoding="utf-8", newline="\n") as file:
                file.writelines(held[number])
        except OSError as error:
            raise UserError(
                f"cannot be written: {error.strerror}",
                path=path,
                fix="free space for a copy of the text of the corpus"
                f"{storage.describe_free_space(path)}",
            ) from None
    held.clear()


def _decode(raw: bytes, path: str, number: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"invalid UTF-8 byte 0x{raw[error.start]:02x} "
            f"at column {error.start + 1}",
            path=path,
            line=number,
            fix="convert the file to UTF-8",
        ) from None


def _check_start(line: str, path: str) -> str:
    """Returns line 1 without its byte order mark; checks the line ends."""
    line = line.removeprefix("\ufeff")
    if line.rstrip("\r\n").count("\r") > 1:
        raise UserError(
            "line ends are lone carriage returns",
            path=path,
            line=1,
            expected="newlines",
            fix="convert the file, for example with `tr '\\r' '\\n'`",
        )
    return line


def _document_key(seed: int, file: int, document: int) -> int:
    digest = hashlib.blake2b(
        f"{seed}/{file}/{document}".encode(), digest_size=8
    )
    return int.from_bytes(digest.digest(), "little")
