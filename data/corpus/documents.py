"""A corpus: text files with one sentence a line, blank lines between documents.

Documents are dealt into buckets, the units of work: which bucket a document
goes to depends on (seed, file number, document number) alone.
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

BUCKET_BYTES = 4_000_000  # text of one bucket, about
_FLUSH_BYTES = 64_000_000  # text held while dealing


@dataclasses.dataclass(frozen=True)
class Corpus:
    """What one pass over the files found.

    Attributes:
        files: paths, in the order they are read.
        document_bytes: int64 [documents of the corpus], UTF-8 bytes of each.
        documents_per_file: int64 [len(files)].
    """

    files: list[str]
    document_bytes: np.ndarray
    documents_per_file: np.ndarray

    @property
    def num_buckets(self) -> int:
        """Depends on the corpus only; each has at least two documents."""
        by_size = -(-int(self.document_bytes.sum()) // BUCKET_BYTES)
        return max(1, min(by_size, len(self.document_bytes) // 2))

    def buckets(self, seed: int) -> np.ndarray:
        """The bucket of each document.

        Documents are ranked by a hash, and each bucket takes an equal share
        of the ranks.

        Args:
            seed: changes which documents meet in a bucket.

        Returns:
            int64 [documents of the corpus].
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
        return ranks * self.num_buckets // len(ranks)


def scan(files: list[str]) -> Corpus:
    """Reads every file once, checks it and counts its documents.

    Raises:
        UserError: invalid UTF-8, a file that cannot be read, lone carriage
            returns for line ends, or no document in the whole corpus.
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
            expected="one sentence a line, a blank line between documents",
        )
    return Corpus(files, np.array(sizes), np.array(per_file))


def documents(
    path: str, on_read: Callable[[int], None] | None = None
) -> Iterator[list[str]]:
    """Yields the documents of a file, each a list of stripped lines.

    Args:
        path: of the file.
        on_read: called now and then with the bytes that were read.
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
        path: of the file.
        on_read: called now and then with the bytes that were read.
        stripped: characters to strip; None: all white space.
        on_bad: takes the error of a line that is no UTF-8, which is then
            blank; None: the error is raised.
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


def deal(corpus: Corpus, seed: int, folder: str, first: int = 0) -> list[str]:
    """Writes each bucket's documents to a file of its own.

    Args:
        corpus: from `scan`.
        seed: of the dealing.
        folder: where the files are written.
        first: number of the first bucket, from which the rest count on.

    Returns:
        one path a bucket.

    Raises:
        UserError: the disk is full.
    """
    if storage.is_remote(folder):  # to which nothing can be appended
        with tempfile.TemporaryDirectory() as here:
            paths = deal(corpus, seed, here, first)
            return [storage.copy(path, folder) for path in paths]
    buckets = iter(corpus.buckets(seed))
    paths = [
        os.path.join(folder, f"bucket-{i:05d}.txt")
        for i in range(first, first + corpus.num_buckets)
    ]
    held: dict[int, list[str]] = {}
    held_bytes = 0
    for path in corpus.files:
        for document in documents(path):
            text = "\n".join(document) + "\n\n"
            held.setdefault(int(next(buckets)), []).append(text)
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
    for bucket in sorted(held):
        path = paths[bucket]
        try:
            with open(path, "a", encoding="utf-8", newline="\n") as file:
                file.writelines(held[bucket])
        except OSError as error:
            raise UserError(
                f"cannot be written: {error.strerror}",
                path=path,
                fix="make room for a copy of the corpus' text"
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
    """Line 1 without its byte order mark."""
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
