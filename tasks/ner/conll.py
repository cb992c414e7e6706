"""Words in columns, as in the CoNLL shared tasks.

    -DOCSTART- -X- O O      begins a document

    Angela NNP I-NP B-PER   a word a line; its label is the last column
    visits VBZ I-VP O

    Berlin NNP I-NP B-LOC   a blank line ends a sentence

Columns are parted by tabs if a line of the file has one, else by spaces.
"""

import dataclasses
import re
from collections.abc import Iterable, Iterator

from common.errors import UserError
from common.storage import write_whole
from data.corpus import documents
from tasks.ner import entities

DOCUMENT = "-DOCSTART-"
_ASCII_SPACE = " \t\r\n\v\f"  # another white space may be a word


@dataclasses.dataclass(frozen=True)
class Columns:
    """Where words and labels stand.

    Attributes:
        word: number of the column, from 0.
        label: number of the column, -1 the last; None if there are none.
    """

    word: int = 0
    label: int | None = -1


@dataclasses.dataclass
class Sentence:
    """Words between blank lines.

    Attributes:
        words: at least one.
        labels: one a word; none if the file has no labels.
        line: of the first word, from 1.
        document: number of its document, from 0.
    """

    words: list[str]
    labels: list[str]
    line: int
    document: int


def read(path: str, columns: Columns) -> list[Sentence]:
    """Reads a file.

    Args:
        path: text in columns, `.gz` or plain.
        columns: which of them.

    Returns:
        its sentences, in their order.

    Raises:
        UserError: it cannot be read, has no word, or a line has other
            columns than the first.
    """
    sentences, document, inside = [], 0, False
    for number, fields in _rows(path, columns):
        if not fields or fields == [DOCUMENT]:
            inside = False
            if fields and sentences:
                document = sentences[-1].document + 1
            continue
        if not inside:
            sentences.append(Sentence([], [], number, document))
            inside = True
        sentences[-1].words.append(fields[columns.word])
        if columns.label is not None:
            sentences[-1].labels.append(fields[columns.label])
    if not sentences:
        raise UserError(
            "no word",
            path=path,
            expected="a word a line, a blank line between sentences",
        )
    return sentences


def has_entities(sentences: list[Sentence], path: str) -> bool:
    """Whether labels mark entities; else they are of any other kind.

    They do if one of them begins with `B-` or `I-`, or all are `O`.

    Raises:
        UserError: they do, but for some; it names the first.
    """
    known = {label for x in sentences for label in x.labels}
    marks = {x for x in known if x.startswith(("B-", "I-"))}
    if not marks and known != {entities.OUTSIDE}:
        return False
    for sentence in sentences:
        for place, label in enumerate(sentence.labels):
            if not entities.is_entity_label(label):
                raise UserError(
                    f"label {label!r} among labels of entities",
                    path=path,
                    line=sentence.line + place,
                    expected="O, or B-, I-, E-, S- and a type, as B-PER",
                    fix="mend the line, or pass --label_kind=any",
                )
    return True


def write_predictions(
    source: str, path: str, columns: Columns, labels: Iterable[str]
) -> None:
    """Writes a file again with one more column, as `conlleval` reads it.

    Args:
        source: the file that was read.
        path: of the new one; it appears whole or not at all.
        columns: as it was read.
        labels: predicted, one a word of the file.
    """
    labels, lines = iter(labels), []
    for text in documents.lines(source, stripped=_ASCII_SPACE):
        if not text:
            lines.append("")
            continue
        mark = "\t" if "\t" in text else " "
        fields = _split(text, mark)
        is_word = not _begins_document(fields, columns)
        label = next(labels) if is_word else entities.OUTSIDE
        lines.append(mark.join([*fields, label]))
    assert next(labels, None) is None, "more labels than words"
    write_whole(path, "".join(f"{line}\n" for line in lines))


def _rows(path: str, columns: Columns) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of each line; no field of a blank one."""
    mark, width = None, 0
    for number, text in enumerate(
        documents.lines(path, stripped=_ASCII_SPACE), 1
    ):
        if not text:
            yield number, []
            continue
        line_mark = "\t" if "\t" in text else " "
        fields = _split(text, line_mark)
        if _begins_document(fields, columns):
            yield number, [DOCUMENT]
            continue
        if not width:
            width, mark = len(fields), line_mark
            _check(path, number, columns, fields)
        if len(fields) != width or (line_mark != mark and width > 1):
            raise UserError(
                f"{len(fields)} columns: {text[:40]!r}",
                path=path,
                line=number,
                expected=f"{width}, parted by "
                f"{'tabs' if mark == chr(9) else 'spaces'}, as before",
            )
        if not fields[columns.word] or (
            columns.label is not None and not fields[columns.label]
        ):
            raise UserError(
                f"an empty column: {text[:40]!r}",
                path=path,
                line=number,
                expected="a word and its label",
            )
        yield number, fields


def _check(path: str, line: int, columns: Columns, fields: list[str]) -> None:
    """Whether the first line has the columns that are asked for."""
    width = len(fields)
    word, label = columns.word, columns.label
    wanted = [word] if label is None else [word, label]
    if any(not -width <= column < width for column in wanted):
        raise UserError(
            f"{width} columns: {' '.join(fields)[:40]!r}",
            path=path,
            line=line,
            expected=f"columns {' and '.join(map(str, wanted))}",
            fix="see --word_column and --label_column",
        )
    if label is not None and word % width == label % width:
        raise UserError(
            f"{width} column{'s' * (width > 1)}: {' '.join(fields)[:40]!r}",
            path=path,
            line=line,
            expected="a word and its label",
            fix="a file without labels can only be predicted",
        )


def _begins_document(fields: list[str], columns: Columns) -> bool:
    """Some files have the mark alone in its line."""
    return DOCUMENT in (fields[0], *fields[columns.word : columns.word + 1])


def _split(text: str, mark: str) -> list[str]:
    return text.split("\t") if mark == "\t" else re.split(" +", text)
