"""Sentences of documents -> a corpus file, one sentence a line."""

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
class Counts:
    """What was written, and what not.

    Attributes:
        documents: written ones.
        sentences: of them.
        empty: documents without text, which are left out.
        single: written documents of one sentence.
    """

    documents: int = 0
    sentences: int = 0
    empty: int = 0
    single: int = 0


def join_documents(
    sentences: Iterable[raw_text.Sentences], counts: Counts, source: str
) -> Iterator[str]:
    """Yields the text of the corpus, piece by piece.

    Args:
        sentences: from `split_all`.
        counts: is added to.
        source: where the text is from, for the message.

    Raises:
        UserError: at the end, if there was no sentence.
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


def write_text(path: str, pieces: Iterable[str]) -> int:
    """Writes text to a file that appears whole or not at all.

    Args:
        path: of the file; `.gz` is compressed, to the same bytes each time.
        pieces: of the text; an error in making them leaves no file.

    Returns:
        bytes of the text.

    Raises:
        UserError: the file cannot be written.
    """
    temporary, size = temporary_name(path), 0
    try:
        with open(temporary, "wb") as file:
            with _opened(file, path) as output:
                for piece in pieces:
                    size += output.write(piece.encode())
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
    """The name that `path` has while it is written."""
    return f"{path}.partial"


def _opened(file, path: str):
    """What text goes into, so that `file` gets it as `path` asks."""
    if path.endswith(".gz"):
        return gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)
    return contextlib.nullcontext(file)
