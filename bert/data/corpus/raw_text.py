"""Splits raw text into documents, paragraphs and sentences.

Plain text: paragraphs are separated by blank lines; their lines, which may be
wrapped, are joined by a space. With the document boundary `file` each file is
a document; with `blank_line` each paragraph is a document.

JSON lines (`.jsonl`, `.json`): each object is a document, and every newline in
its text ends a paragraph. Such text comes from extractors, which do not wrap
lines: a newline ends a heading, a list item or a paragraph. Rows of Parquet
files are handled in the same way, with the text in a column.

Sentences do not cross paragraphs. Paragraphs of more than 100,000 characters
are processed in parts, so that memory and time are bounded.
"""

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator

import sentencex

from bert.common import processes, storage, text_lines
from bert.common.errors import UserError
from bert.common.formats import endings, json_files, parquet_files
from bert.data.corpus import chunks, documents

# Languages with rules in sentencex, which splits all others as English; and
# Chinese, whose full stops are among the rules of English.
LANGUAGES = (
    "am ar bg bn ca da de el en es fi fr gu hi hy it ja kk kn ml mr my nl pa "
    "pl pt ru sk ta te uk zh"
).split()
# The time of sentencex is quadratic in the number of quotes and brackets.
_PART = 100_000  # characters
_FIRST = 8192  # bytes in which a zero byte means a binary file
_CHUNK = 500_000  # characters that a process receives at once

Paragraph = tuple[int, str]  # number of its document, text
Sentences = tuple[int, str, int]  # number of document, lines, their count


class BadLines:
    """Counter of dropped lines, which reports the first five.

    Args:
        limit: int. Maximum number of lines to drop.
        report: callable. Called with a message for each of the first five
            lines.

    Attributes:
        count: int. Number of dropped lines.
    """

    def __init__(self, limit: int, report: Callable[[str], None]):
        self._limit, self._report = limit, report
        self.count = 0

    def add(self, error: UserError) -> None:
        """Counts a dropped line.

        Args:
            error: UserError. The reason.

        Raises:
            UserError: The limit is exceeded.
        """
        if self.count == self._limit:
            fix = "pass --max_bad_lines to drop such lines"
            if self._limit:
                fix = f"this is bad line {self.count + 1} "
                fix += f"(--max_bad_lines={self._limit})"
            raise UserError(str(error), fix=fix)

        # Thousands of warnings would hide the progress.
        self.count += 1
        if self.count <= 5:
            self._report(f"warning: dropped a line: {error}")


def is_marked_up(path: str) -> bool:
    """Returns whether a file that is read as plain text starts with markup."""
    if not storage.is_file(path) or endings.format_of(path) == "json":
        return False
    with storage.open_file(path, "rb") as file:
        return file.read(5).startswith((b'{"', b"<doc "))


def is_binary(path: str) -> bool:
    """Returns whether a file is binary: its first 8 kB have a zero byte.

    UTF-16 text has zero bytes too, but starts with a byte order mark.
    """
    # These formats have zero bytes, but can be read.
    if path.endswith(".gz") or endings.format_of(path) == "parquet":
        return False
    with storage.open_file(path, "rb") as file:
        first = file.read(_FIRST)
    return b"\0" in first and first[:2] not in (b"\xff\xfe", b"\xfe\xff")


def read_paragraphs(
    files: list[str],
    document_boundary: str,
    text_field: str,
    on_bad: Callable[[UserError], None] = text_lines.reject,
) -> Iterator[Paragraph]:
    """Yields the paragraphs of all files with the numbers of their documents.

    An empty document yields an empty paragraph; a long paragraph is yielded
    in parts. The progress is logged.

    Args:
        files: list of str. Plain text or JSON lines, also with `.gz`, or
            Parquet.
        document_boundary: str. `file` or `blank_line`, for plain text.
        text_field: str. Field of JSON lines, or column, with the text.
        on_bad: callable. Called with the error of an unreadable line, which
            is then dropped. In plain text, a dropped line ends its paragraph.
            Default: raise the error.

    Raises:
        UserError: A file cannot be read or is not UTF-8, or a line is
            not JSON or lacks the text.
    """
    first = 0
    for path, on_read in documents.follow("corpus", files):
        lines = text_lines.lines(path, on_read, on_bad)
        kind = endings.format_of(path)
        if kind == "parquet":
            texts = _column_texts(path, text_field, on_bad)
            numbered = _paragraphs_of(texts)
        elif kind == "json":
            texts = _json_texts(lines, path, text_field, on_bad)
            numbered = _paragraphs_of(texts)
        else:
            numbered = _plain_paragraphs(lines, document_boundary)

        # Documents are numbered across files, including empty files.
        last = first - 1
        for number, paragraph in numbered:
            last = first + number
            yield last, paragraph
        first = last + 1


def split_sentences(paragraph: str, language: str) -> list[str]:
    """Splits a paragraph into sentences; only white space is lost.

    Args:
        paragraph: str. Any text; a run of white space counts as one space.
        language: str. One of `LANGUAGES`.

    Returns:
        list of str. The sentences, stripped and without line breaks.
    """
    # sentencex panics on some texts with white space other than spaces.
    text = " ".join(paragraph.split())
    sentences, start = [], 0
    while start < len(text):
        # A part ends at a space, or inside a word that is too long.
        end = start + _PART
        if end < len(text):
            end = text.rfind(" ", start, end) + 1 or end

        segments = sentencex.segment(language, text[start:end])
        if end < len(text) and len(segments) > 1:
            end -= len(segments.pop())  # the last may continue after the part
        sentences += segments
        start = end
    return [stripped for s in sentences if (stripped := s.strip())]


def split_all(
    paragraphs: Iterable[Paragraph], language: str, num_processes: int
) -> Iterator[Sentences]:
    """Splits paragraphs into sentences in several processes, in order.

    Args:
        paragraphs: iterable. Result of `read_paragraphs`.
        language: str. One of `LANGUAGES`.
        num_processes: int. Number of processes; 1 uses this process.

    Yields:
        Sentences of consecutive paragraphs of one document; the next item
        may continue the document.
    """
    # Results are in the order of the chunks for any number of processes.
    worker = functools.partial(_splitter, language)
    # Empty paragraphs count too.
    divided = chunks.divide(paragraphs, _CHUNK, lambda x: len(x[1]) + 1)
    for sentences in processes.map_in_order(worker, divided, num_processes):
        yield from sentences


def _plain_paragraphs(
    lines: Iterable[tuple[int, str]], document_boundary: str
) -> Iterator[Paragraph]:
    document = 0
    if document_boundary == "file":
        yield document, ""  # the file is a document even if it is empty

    # A run of lines with text is a paragraph; blank lines divide runs.
    stripped = (line.strip() for _, line in lines)
    for has_text, run in itertools.groupby(stripped, bool):
        if not has_text:
            continue
        # A long paragraph is yielded in parts of complete lines.
        for part in chunks.divide(run, _PART, len):
            yield document, " ".join(part)
        if document_boundary == "blank_line":
            document += 1


def _paragraphs_of(texts: Iterable[str]) -> Iterator[Paragraph]:
    for document, text in enumerate(texts):
        for paragraph in text.split("\n"):
            yield document, paragraph


def _json_texts(
    lines: Iterable[tuple[int, str]],
    path: str,
    text_field: str,
    on_bad: Callable[[UserError], None],
) -> Iterator[str]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            yield _json_text(line, path, number, text_field)
        except UserError as error:
            on_bad(error)


def _column_texts(
    path: str, column: str, on_bad: Callable[[UserError], None]
) -> Iterator[str]:
    for row, (text,) in parquet_files.rows(path, [column]):
        try:
            yield _checked(text, column, path, row, "pass --text_field")
        except UserError as error:
            on_bad(error)


def _json_text(line: str, path: str, number: int, text_field: str) -> str:
    expected = f"a JSON object per line, with the text in {text_field!r}"
    with json_files.reported(path, expected, line=number):
        fields = json_files.decode(line, dict)

    # The message lists the fields to choose from.
    names = ", ".join(map(repr, list(fields)[:20])) or "none"
    fix = f"the fields are {names}: pass --text_field"
    return _checked(fields.get(text_field), text_field, path, number, fix)


def _checked(text, name: str, path: str, line: int, fix: str) -> str:
    if isinstance(text, str):
        return text
    raise UserError(
        f"{name!r} is not a string: {repr(text)[:40]}",
        path=path,
        line=line,
        expected="the text of a document",
        fix=fix,
    )


def _splitter(language: str) -> Callable[[list[Paragraph]], list[Sentences]]:
    return functools.partial(_split_chunk, language=language)


def _split_chunk(chunk: list[Paragraph], language: str) -> list[Sentences]:
    # The first and the last document may continue in other chunks.
    split = []
    for document, group in itertools.groupby(chunk, operator.itemgetter(0)):
        sentences = [
            f"{sentence}\n"
            for _, paragraph in group
            for sentence in split_sentences(paragraph, language)
        ]
        split.append((document, "".join(sentences), len(sentences)))
    return split
