"""Writes a corpus file, one sentence per line."""

import contextlib
import dataclasses
import gzip
import itertools
import operator
import os
from collections.abc import Callable, Iterable, Iterator

from bert.common import atomic, storage
from bert.common.errors import UserError
from bert.common.jobs import locks
from bert.data.corpus import raw_text


@dataclasses.dataclass
class CorpusCounts:
    """Counts of a prepared corpus.

    Attributes:
        documents: int. Number of written documents.
        sentences: int. Number of written sentences.
        empty: int. Number of documents without text, which are dropped.
        single: int. Number of written documents with only one sentence.
    """

    documents: int = 0
    sentences: int = 0
    empty: int = 0
    single: int = 0


def join_documents(
    sentences: Iterable[raw_text.Sentences],
    counts: list[CorpusCounts],
    file_of: Callable[[int], int],
    source: str,
) -> Iterator[tuple[int, str]]:
    """Yields the text of one or several corpora in parts.

    Args:
        sentences: iterable. Result of `raw_text.split_all`.
        counts: list of CorpusCounts. One for each corpus, updated in place.
        file_of: callable. Number of a document -> index of its corpus.
        source: str. The input, for the message.

    Yields:
        (index, text). Index of the corpus, and a part of its text.

    Raises:
        UserError: The input has no sentence.
    """
    by_document = itertools.groupby(sentences, operator.itemgetter(0))
    for document, parts in by_document:
        index, here = file_of(document), 0
        corpus = counts[index]
        for _, lines, number in parts:
            # Written only before a sentence, as the document may be empty.
            if number and not here and corpus.documents:
                yield index, "\n"
            yield index, lines
            here += number

        corpus.documents += here > 0
        corpus.sentences += here
        corpus.empty += here == 0
        corpus.single += here == 1

    if not any(corpus.sentences for corpus in counts):
        raise UserError(
            "no text in it",
            path=source,
            expected="at least one document with text",
        )


@contextlib.contextmanager
def open_text(path: str) -> Iterator[Callable[[str], int]]:
    """Context manager that writes a file, which appears complete at the end.

    A lock keeps other processes from writing the same file.

    Args:
        path: str. The file; `.gz` is compressed, always to the same bytes.

    Yields:
        A function that writes text and returns its size in bytes.

    Raises:
        UserError: The file cannot be written, or another process writes it.
    """
    folder, name = os.path.split(path)
    with contextlib.ExitStack() as outputs:
        if not storage.is_remote(path):
            lock = os.path.join(folder, f".{name}.lock")
            outputs.enter_context(locks.hold(lock, path))

        temporary = outputs.enter_context(atomic.whole_file(path))
        file = outputs.enter_context(storage.open_file(temporary, "wb"))
        output = outputs.enter_context(_opened(file, path))
        yield lambda text: output.write(text.encode())


def _opened(file, path: str):
    """Wraps a file for compression, if the path ends in `.gz`."""
    if path.endswith(".gz"):
        return gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)
    return contextlib.nullcontext(file)
