"""Writing of a corpus file, one sentence per line."""

import contextlib
import dataclasses
import gzip
import itertools
import operator
import os
from collections.abc import Iterable, Iterator

from common.errors import UserError
from data.corpus import raw_text


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
    sentences: Iterable[raw_text.Sentences], counts: CorpusCounts, source: str
) -> Iterator[str]:
    """Yields the text of the corpus in parts.

    Args:
        sentences: from `raw_text.split_all`.
        counts: updated with each document.
        source: the input, for the message.

    Raises:
        UserError: there was no sentence in the whole input.
    """
    for _, parts in itertools.groupby(sentences, operator.itemgetter(0)):
        here = 0
        for _, lines, number in parts:
            if number and not here and counts.documents:
                yield "\n"
            yield lines
            here += number
        counts.documents += here > 0
        counts.sentences += here
        counts.empty += here == 0
        counts.single += here == 1
    if not counts.sentences:
        raise UserError(
            "no text in it",
            path=source,
            expected="at least one document with text",
        )


def write_text(path: str, parts: Iterable[str]) -> int:
    """Writes text to a file atomically.

    Args:
        path: the file; `.gz` is compressed, always to the same bytes.
        parts: parts of the text; if iterating raises, no file is left.

    Returns:
        size of the text in bytes.

    Raises:
        UserError: the file cannot be written.
    """
    temporary, size = temporary_name(path), 0
    try:
        with open(temporary, "wb") as file:
            with _opened(file, path) as output:
                for part in parts:
                    size += output.write(part.encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(
            f"cannot be written: {error.strerror}", path=path
        ) from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    return size


def temporary_name(path: str) -> str:
    """Returns the name of a file while it is written."""
    return f"{path}.partial"


def _opened(file, path: str):
    """Wraps a file for compression, if the path ends in `.gz`."""
    if path.endswith(".gz"):
        return gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)
    return contextlib.nullcontext(file)
