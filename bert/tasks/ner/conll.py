"""Reads and writes files of words and labels in CoNLL's columns.

    -DOCSTART- -X- O O      begins a document

    Angela NNP I-NP B-PER   one word per line; its label is the last column
    visits VBZ I-VP O

    Berlin NNP I-NP B-LOC   a blank line ends a sentence

Columns are separated by tabs if the lines have tabs, else by spaces. In files
whose first column numbers the words (CoNLL-U, GermEval), lines that begin with
# or a range, such as 1-2, are skipped. In other files, # may be a word. A
comment there precedes the words of a sentence, and is `# newdoc`, `# newpar`,
`# key = value`, or a line that begins with `# ` and has other columns than the
words.
"""

import dataclasses
import re
from collections.abc import Iterable, Iterator

from bert.common import text_lines
from bert.common.atomic import write_whole
from bert.common.errors import UserError
from bert.common.formats import endings
from bert.common.progress import log
from bert.tasks.ner import entities

DOCUMENT = "-DOCSTART-"
_NO_WORD = re.compile(  # in files with numbered words
    r"(#|\d+[-.]\d+)([\t ]|$)"
)
_COMMENT = re.compile(r"# ((newdoc|newpar)( |$)|\S+ =( |$))")  # in other files
_ASCII_SPACE = " \t\r\n\v\f"  # other white space may be a word


@dataclasses.dataclass(frozen=True)
class Columns:
    """Columns of the words and labels.

    Attributes:
        word: index of the word column, from 0.
        label: index of the label column, -1 for the last; None if the file
            has no labels.
    """

    word: int = 0
    label: int | None = -1


@dataclasses.dataclass
class Sentence:
    """Words between blank lines.

    Attributes:
        words: the words, at least one.
        labels: one label per word; empty if the file has no labels.
        lines: the line number of each word, from 1.
        document: index of the sentence's document, from 0.
    """

    words: list[str]
    labels: list[str]
    lines: list[int]
    document: int


def read(path: str, columns: Columns) -> list[Sentence]:
    """Reads the sentences of a file.

    Args:
        path: str. The file, plain or `.gz`.
        columns: columns of the words and labels.

    Raises:
        UserError: if the file cannot be read, has no words, or a line has a
            different number of columns than the first.
    """
    if endings.format_of(path) == "json":
        raise UserError(
            "is JSON",
            path=path,
            expected="columns: a word and its label in each line",
        )

    sentences, document, inside = [], 0, False
    for number, fields in _read_lines(path, columns):
        if not fields or fields == [DOCUMENT]:
            inside = False
            if fields and sentences:
                document = sentences[-1].document + 1
            continue

        # Begin a sentence at its first word, as blank lines may repeat.
        if not inside:
            sentences.append(Sentence([], [], [], document))
            inside = True
        sentences[-1].words.append(fields[columns.word])
        sentences[-1].lines.append(number)
        if columns.label is not None:
            sentences[-1].labels.append(fields[columns.label])

    if not sentences:
        raise UserError(
            "no word",
            path=path,
            expected="one word per line, a blank line between sentences",
        )
    _warn_of_comments(path, sentences)
    return sentences


def has_entities(sentences: Iterable[Sentence], path: str) -> bool:
    """Whether the labels mark entities.

    They do if a label begins with `B-` or `I-`, or if all labels are `O` or
    entity labels, such as `S-PER` in IOBES, see `entities.kind_of`.

    Args:
        sentences: the labelled sentences.
        path: str. The file of the sentences, for messages.

    Raises:
        UserError: if only some labels mark entities, or they are in lower
            case.
    """
    lines: dict[str, int] = {}  # label -> its first line
    for sentence in sentences:
        for line, label in zip(sentence.lines, sentence.labels):
            lines.setdefault(label, line)
    if not any(x.startswith(("B-", "I-")) for x in lines):
        if label := entities.in_lower_case(lines):
            raise UserError(
                f"label {label!r}",
                path=path,
                line=lines[label],
                expected="entity labels in upper case, such as B-PER and O",
                fix="correct the labels, or pass --label_kind=any",
            )
        return entities.kind_of(lines) == entities.ENTITIES

    # Entities are marked, so all labels must be entity labels.
    for label, line in lines.items():
        if entities.kind_of([label]) == entities.ANY:
            raise UserError(
                f"label {label!r} among entity labels",
                path=path,
                line=line,
                expected="O, or B-, I-, E- or S- and a type, such as B-PER",
                fix="correct the line, or pass --label_kind=any",
            )
    return True


def write_predictions(
    source: str,
    path: str,
    sentences: Iterable[Sentence],
    labels: Iterable[list[str]],
) -> None:
    """Copies a file with a column of predictions, as `conlleval` reads it.

    Args:
        source: str. The file with the words.
        path: str. The file to write, atomically.
        sentences: the sentences of `source`.
        labels: the predicted labels of each sentence.
    """
    label_of: dict[int, str] = {}  # number of a line -> label of its word
    for sentence, predicted in zip(sentences, labels, strict=True):
        label_of |= zip(sentence.lines, predicted, strict=True)

    # Document marks and ranges such as 1-2 get a label, too, so that all lines
    # except comments have the same number of columns.
    lines, texts = [], _stripped_lines(source)
    is_numbered = _numbers_words(texts)
    for number, text in enumerate(texts, 1):
        other = ""
        if DOCUMENT in text.split():
            other = entities.OUTSIDE
        elif is_numbered and text[:1] != "#" and _NO_WORD.match(text):
            other = "_"
        label = label_of.get(number, other)
        lines.append(f"{text}{_separator(text)}{label}" if label else text)
    write_whole(path, "".join(f"{line}\n" for line in lines))


def _warn_of_comments(path: str, sentences: Iterable[Sentence]) -> None:
    """Warns about labels of `#` alone, which may be words of comments."""
    others, lines = set(), dict[str, int]()  # label -> its first line
    for sentence in sentences:
        for word, line, label in zip(
            sentence.words, sentence.lines, sentence.labels
        ):
            if word == "#":
                lines.setdefault(label, line)
            else:
                others.add(label)
    for label in sorted(lines.keys() - others):
        warning = UserError(
            f"label {label!r} is only at words '#'",
            path=path,
            line=lines[label],
            fix="remove the lines if they are comments",
        )
        log(f"warning: {warning}")


def _stripped_lines(path: str) -> list[str]:
    return [line.strip(_ASCII_SPACE) for _, line in text_lines.lines(path)]


def _read_lines(path: str, columns: Columns) -> Iterator[tuple[int, list[str]]]:
    """Yields the number and fields of each line; a blank line has none."""
    separator, width = None, 0

    # Otherwise the model would learn the numbers instead of the words.
    texts = _stripped_lines(path)
    is_numbered = _numbers_words(texts)
    if is_numbered and columns.word == 0:
        raise UserError(
            "the first column numbers the words",
            path=path,
            expected="the words in --word_column=0",
            fix="pass --word_column=1 and --label_column, such as 3 for parts "
            "of speech in CoNLL-U, or 2 for GermEval",
        )

    comments = set() if is_numbered else _comments(texts)
    for number, text in enumerate(texts, 1):
        if number in comments or is_numbered and _NO_WORD.match(text):
            continue
        if not text:
            yield number, []
            continue

        # The separator may vary only in a file with one column.
        line_separator = _separator(text)
        fields = _split(text)
        if _begins_document(fields, columns):
            yield number, [DOCUMENT]
            continue

        # The first word sets the number of columns.
        if not width:
            width, separator = len(fields), line_separator
            _check_columns(path, number, columns, fields)
        if len(fields) != width or (line_separator != separator and width > 1):
            raise UserError(
                f"{len(fields)} columns: {text[:40]!r}",
                path=path,
                line=number,
                expected=f"{width}, separated by "
                f"{'tabs' if separator == chr(9) else 'spaces'}, as before",
            )

        if not fields[columns.word] or (
            columns.label is not None and not fields[columns.label]
        ):
            raise UserError(
                f"empty column: {text[:40]!r}",
                path=path,
                line=number,
                expected="a word and its label",
            )
        yield number, fields


def _comments(lines: list[str]) -> set[int]:
    """Numbers of the comments among lines without numbers of words."""
    words = (x for x in lines if x and x[:2] != "# " and DOCUMENT not in x)
    width = len(_split(next(words, "")))

    found, precedes_words = set[int](), True
    for number, text in enumerate(lines, 1):
        if not text:
            precedes_words = True
        elif precedes_words and text.startswith("# "):
            if _COMMENT.match(text) or len(_split(text)) != width:
                found.add(number)
            else:
                precedes_words = False
        else:
            precedes_words = False
    return found


def _numbers_words(lines: list[str]) -> bool:
    """Whether the first of several columns numbers the words of a sentence."""
    numbers: list[str] = []

    # Check the first sentence with several words.
    for text in lines:
        if not text and len(numbers) > 1:
            break
        if not text:
            numbers = []
        elif not _NO_WORD.match(text):
            first, *others = re.split("[\t ]", text)
            numbers.append(first if others else "")
    expected = [str(number) for number in range(1, len(numbers) + 1)]
    return len(numbers) > 1 and numbers == expected


def _check_columns(
    path: str, line: int, columns: Columns, fields: list[str]
) -> None:
    """Checks that the first line has the requested columns."""
    width = len(fields)
    word, label = columns.word, columns.label
    requested = [word] if label is None else [word, label]
    if any(not -width <= column < width for column in requested):
        raise UserError(
            f"{width} columns: {' '.join(fields)[:40]!r}",
            path=path,
            line=line,
            expected=f"columns {' and '.join(map(str, requested))}",
            fix="see --word_column and --label_column",
        )

    # 1 and -1 may be the same column.
    if label is not None and word % width == label % width:
        columns = "1 column" if width == 1 else f"{width} columns"
        raise UserError(
            f"{columns}: {' '.join(fields)[:40]!r}",
            path=path,
            line=line,
            expected="a word and its label",
            fix="pass a file without labels as --predict_file",
        )


def _begins_document(fields: list[str], columns: Columns) -> bool:
    """Whether a line begins a document, with or without other columns."""
    return DOCUMENT in (fields[0], *fields[columns.word : columns.word + 1])


def _separator(text: str) -> str:
    return "\t" if "\t" in text else " "


def _split(text: str) -> list[str]:
    return text.split("\t") if "\t" in text else re.split(" +", text)
