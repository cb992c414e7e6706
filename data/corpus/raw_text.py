"""Raw text of people -> documents -> sentences, one a line.

Plain text: a paragraph is lines between blank lines, and its lines, which may
be wrapped, are joined by a space. With the document boundary `file` a file is
a document; with `blank_line` each paragraph is one.

JSON lines (`.jsonl`, `.json`): an object is a document, and every newline in
its text ends a paragraph. Such text comes from extractors, which do not wrap
lines: a newline there is the end of a heading, a list item or a paragraph.

No sentence crosses a paragraph. Paragraphs of more than 100,000 characters
are worked on in parts, so that memory and time stay bounded.
"""

import functools
import itertools
import json
import operator
from collections.abc import Callable, Iterable, Iterator

import sentencex

from common import processes, storage
from common.errors import UserError
from data.corpus import documents
from data.text import surrogates

# Those that sentencex has rules for; it splits all others as English.
LANGUAGES = (
    "am ar bg bn ca da de el en es fi fr gu hi hy it ja kk kn ml mr my nl pa "
    "pl pt ru sk ta te uk"
).split()
# sentencex takes time that grows with the square of the quotes and brackets.
_PART = 100_000  # characters
_CHUNK = 500_000  # characters that a process gets at once

Paragraph = tuple[int, str]  # number of its document, text
Sentences = tuple[int, str, int]  # number of their document, lines, how many


class BadLines:
    """Lines that are dropped: counted, and the first five reported.

    Args:
        most: so many may be dropped.
        report: takes a line on each of the first five.

    Attributes:
        count: lines that were dropped.
    """

    def __init__(self, most: int, report: Callable[[str], None]):
        self._most, self._report = most, report
        self.count = 0

    def add(self, error: UserError) -> None:
        """Counts a line.

        Args:
            error: what is wrong with it.

        Raises:
            UserError: it is one too many.
        """
        if self.count == self._most:
            fix = "pass --max_bad_lines to drop such lines"
            if self._most:
                fix = f"this is bad line {self.count + 1} "
                fix += f"(--max_bad_lines={self._most})"
            raise UserError(str(error), fix=fix)
        self.count += 1
        if self.count <= 5:
            self._report(f"warning: dropped a line: {error}")


def is_json(path: str) -> bool:
    """Whether a file's name says that it holds JSON lines."""
    return path.removesuffix(".gz").endswith((".jsonl", ".json"))


def read_paragraphs(
    files: list[str],
    document_boundary: str,
    text_field: str,
    on_read: Callable[[int], None],
    on_bad: Callable[[UserError], None] | None = None,
) -> Iterator[Paragraph]:
    """Yields the paragraphs of all files with the numbers of their documents.

    An empty document yields an empty paragraph; a long paragraph may come in
    parts.

    Args:
        files: plain text or JSON lines, each also with `.gz`.
        document_boundary: `file` or `blank_line`, of plain text.
        text_field: the field of JSON lines that holds the text.
        on_read: called now and then with the bytes that were read.
        on_bad: takes the error of a line that cannot be read, which is then
            dropped, such as `BadLines.add`; None: the error is raised. Such
            a line of plain text ends its paragraph.

    Raises:
        UserError: a file that cannot be read, invalid UTF-8, or JSON lines
            that are broken or have no such text.
    """
    first, done = 0, 0
    for path in files:

        def on_file(position, done=done):
            on_read(done + position)

        lines = documents.lines(path, on_file, on_bad=on_bad)
        if is_json(path):
            found = _json_paragraphs(lines, path, text_field, on_bad)
        else:
            found = _plain_paragraphs(lines, document_boundary)
        last = first - 1
        for number, paragraph in found:
            last = first + number
            yield last, paragraph
        first = last + 1
        done += storage.size(path)
        on_read(done)


def split_sentences(paragraph: str, language: str) -> list[str]:
    """Splits a paragraph; only white space is lost.

    Args:
        paragraph: any text; each run of white space counts as one space.
        language: one of `LANGUAGES`.

    Returns:
        sentences without white space at their ends and without line breaks.
    """
    # sentencex panics on some text with other white space than spaces.
    text = " ".join(paragraph.split())
    sentences, start = [], 0
    while start < len(text):
        end = start + _PART
        if end < len(text):
            end = text.rfind(" ", start, end) + 1 or end
        found = sentencex.segment(language, text[start:end])
        if end < len(text) and len(found) > 1:
            end -= len(found.pop())  # it may go on in the next part
        sentences += found
        start = end
    return [stripped for s in sentences if (stripped := s.strip())]


def split_all(
    paragraphs: Iterable[Paragraph], language: str, num_processes: int
) -> Iterator[Sentences]:
    """Splits paragraphs on several cores, in order.

    Args:
        paragraphs: from `read_paragraphs`.
        language: one of `LANGUAGES`.
        num_processes: so many; 1 works in this process.

    Yields:
        sentences of consecutive paragraphs of one document; the next item
        may go on with the same document.
    """
    worker = functools.partial(_splitter, language)
    chunks = _chunks(paragraphs)
    for found in processes.map_in_order(worker, chunks, num_processes):
        yield from found


def _plain_paragraphs(
    lines: Iterable[str], document_boundary: str
) -> Iterator[Paragraph]:
    document = 0
    if document_boundary == "file":
        yield document, ""  # the file is a document even if it is empty
    for has_text, run in itertools.groupby(lines, bool):
        if not has_text:
            continue
        for part in _parts(run):
            yield document, part
        if document_boundary == "blank_line":
            document += 1


def _parts(lines: Iterable[str]) -> Iterator[str]:
    """Joins lines, but ends a part at a line's end when it is long."""
    held, size = [], 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= _PART:
            yield " ".join(held)
            held, size = [], 0
    yield " ".join(held)


def _json_paragraphs(
    lines: Iterable[str],
    path: str,
    text_field: str,
    on_bad: Callable[[UserError], None] | None,
) -> Iterator[Paragraph]:
    document = 0
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            text = _json_text(line, path, number, text_field)
        except UserError as error:
            if on_bad is None:
                raise
            on_bad(error)
            continue
        for paragraph in text.split("\n"):
            yield document, paragraph
        document += 1


def _json_text(line: str, path: str, number: int, text_field: str) -> str:
    def mistake(found: str, fix: str | None = None) -> UserError:
        expected = f"a JSON object a line, its text in {text_field!r}"
        return UserError(
            found, path=path, line=number, expected=expected, fix=fix
        )

    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise mistake(
            f"broken JSON at column {error.colno}: {error.msg}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise mistake(f"JSON that cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise mistake(f"JSON that is no object: {line[:40]}")
    if text_field not in found:
        fields = ", ".join(map(repr, list(found)[:20])) or "none"
        raise mistake(
            f"no field {text_field!r}; the fields are {fields}",
            fix="pass --text_field",
        )
    text = found[text_field]
    if not isinstance(text, str):
        value = json.dumps(text)[:40]
        raise mistake(f"{text_field!r} is no string: {value}")
    surrogates.check(text, repr(text_field), path, number)
    return text


def _chunks(paragraphs: Iterable[Paragraph]) -> Iterator[list[Paragraph]]:
    chunk, size = [], 0
    for document, paragraph in paragraphs:
        chunk.append((document, paragraph))
        size += len(paragraph) + 1  # an empty one takes room too
        if size >= _CHUNK:
            yield chunk
            chunk, size = [], 0
    yield chunk


def _splitter(language: str) -> Callable[[list[Paragraph]], list[Sentences]]:
    return functools.partial(_split_chunk, language=language)


def _split_chunk(chunk: list[Paragraph], language: str) -> list[Sentences]:
    found = []
    for document, group in itertools.groupby(chunk, operator.itemgetter(0)):
        sentences = [
            f"{sentence}\n"
            for _, paragraph in group
            for sentence in split_sentences(paragraph, language)
        ]
        found.append((document, "".join(sentences), len(sentences)))
    return found
