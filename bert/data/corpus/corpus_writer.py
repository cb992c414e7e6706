"""Writing of a corpus file, one sentence per line."""

import contextlib
import dataclasses
import gzip
import itertools
import operator
import os
from collections.abc import Callable, Iterable, Iterator

from bert.common import atomic, locks, storage
from bert.common.errors import UserError
from bert.data.corpus import raw_text


@dataclasses.dataclass
class CorpusCounts:
    """Counts of a prepared corpus.

    Attributes:
        documents: documents that were written.
        sentences: sentences that were written.
        empty: documents without text, which are dropped.
        single: written documents of one sentence.
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
        sentences: from `raw_text.split_all`.
        counts: one for each corpus; updated with each document.
        file_of: number of a document -> index of its corpus.
        source: the input, for the message.

    Yields:
        index of the corpus, and a part of its text.

    Raises:
        UserError: there was no sentence in the whole input.
    """
    by_document = itertools.groupby(sentences, operator.itemgetter(0))
    for document, parts in by_document:
        index, here = file_of(document), 0
        corpus = counts[index]
        for _, lines, number in parts:
            # The blank line waits for a sentence: the document may be empty.
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
    """Context in which a file is written; it appears at the end, whole.

    Only one process at a time writes a file.

    Args:
        path: the file; `.gz` is compressed, always to the same bytes.

    Yields:
        a function that writes text, and returns its size in bytes.

    Raises:
        UserError: the file cannot be written, or another process writes it.
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
