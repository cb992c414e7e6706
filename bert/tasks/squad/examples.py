"""SQuAD files: questions on paragraphs; the answers are spans of these.

    {"version": "1.1", "data": [{"paragraphs": [{
        "context": "It was made in 1895.",
        "qas": [{"id": "q1", "question": "When was it made?",
                 "answers": [{"text": "1895", "answer_start": 15}]}]}]}]}

In SQuAD 2.0, a question also has "is_impossible", true if it is unanswerable.
The format of Hugging Face's `datasets` is also supported, as JSON lines or as a
list of records, which may be below "data". Unanswerable questions have empty
lists:

    {"id": 7, "context": "It was made in 1895.",
     "question": "When was it made?",
     "answers": {"text": ["1895"], "answer_start": [15]}}

Invalid answers are reported as `file: qa id: problem`.
"""

import dataclasses
from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from bert.common import storage
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.data.tables import InputFile

NOTHING = "nothing"  # questions only, for prediction
TEXTS = "texts"  # questions and answer texts, for evaluation
SPANS = "spans"  # questions, answer texts and starts, for training

_LARGEST = 1 << 30  # bytes, decompressed; SQuAD has 42 MB


class Answer(msgspec.Struct, frozen=True):
    """A labelled answer.

    Attributes:
        text: the answer.
        start: its first character in the context; None if unknown.
    """

    text: str
    start: int | None = msgspec.field(default=None, name="answer_start")


class _Lists(msgspec.Struct):
    text: list[str]
    answer_start: list[int]


class _Question(msgspec.Struct):
    id: str | int
    question: str
    answers: list[Answer] | _Lists | None = None
    is_impossible: bool | None = None
    context: str | None = None  # only in records
    title: object = None


class _Records(msgspec.Struct):
    data: list[_Question]


class _Line(msgspec.Struct):
    context: object


class _Paragraph(msgspec.Struct):
    context: str
    qas: list[_Question]


class _Article(msgspec.Struct):
    paragraphs: list[_Paragraph]
    title: object = None


class _File(msgspec.Struct):
    data: list[_Article]


_EXPECTED = (
    '{"data": [{"paragraphs": [...]}]}, as in SQuAD, or JSON lines with id, '
    "context, question and answers"
)

WHITE_SPACE = " \t\r\n\u202f"  # between words, as in the original


@dataclasses.dataclass(frozen=True)
class SquadExample:
    """A question and its context.

    Attributes:
        id: the key in prediction files.
        question: the text of the question.
        context: the paragraph.
        answers: the labels; empty if unanswerable or unlabelled.
        impossible: whether it is labelled as unanswerable.
        title: the title of the article, or "".
    """

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] = ()
    impossible: bool = False
    title: str = ""


@dataclasses.dataclass(frozen=True, eq=False)
class QuestionFile(InputFile[SquadExample]):
    """A file of `SquadExample`s.

    Attributes:
        has_impossible: whether the file is of version 2.0: a question has
            `is_impossible`, true or false, or empty lists of answers.
    """

    has_impossible: bool = False


def read(path: str, needed: str = NOTHING) -> QuestionFile:
    """Reads a file, plain or compressed with gzip.

    Args:
        path: str. The file.
        needed: str. The labels to read and check: `NOTHING`, `TEXTS` or
            `SPANS`.

    Raises:
        UserError: the file cannot be read or is invalid.
    """
    seen: set[str] = set()
    examples, has_impossible = [], False
    content = json_files.read_bytes(path, _LARGEST, fix="split the file")
    for title, context, qa in _questions(_decode(path, content)):
        try:
            example = _example(title, context, qa, needed)
            if example.id in seen:
                raise ValueError("duplicate id")
        except ValueError as error:
            raise UserError(f"qa {qa.id}: {error}", path=path) from None
        seen.add(example.id)
        examples.append(example)
        has_impossible |= example.impossible or qa.is_impossible is not None
    if not examples:
        raise UserError("no question", path=path)
    sha256 = storage.hash_file(path) if needed == SPANS else ""
    return QuestionFile(path, examples, sha256, has_impossible=has_impossible)


def check_version(file: QuestionFile, version_2: bool) -> None:
    """Checks the version of a file.

    Args:
        file: the file, read with labels.
        version_2: bool. --version_2_with_negative.

    Raises:
        UserError: the file is of the other version.
    """
    if version_2 and not file.has_impossible:
        raise UserError(
            f"qa {file.rows[0].id}: no is_impossible; this is a file "
            "of version 1.1",
            path=file.path,
            fix="omit --version_2_with_negative, or pass a file of version 2.0",
        )

    # Version 2.0 needs the flag.
    first = next((x for x in file.rows if x.impossible), None)
    if first and not version_2:
        raise UserError(
            f"qa {first.id} has no answer; this is a file of version 2.0",
            path=file.path,
            fix="pass --version_2_with_negative",
        )


def word_numbers(context: str) -> NDArray:
    """The index of the word of each character; words end at white space.

    White space has the index of the word before it, or -1 at the beginning.

    Args:
        context: str. A text without unpaired surrogates.

    Returns:
        int64 [characters].
    """
    # UTF-32 has one number for each character.
    codes = np.frombuffer(context.encode("utf-32-le"), "<u4")
    white = np.isin(codes, [ord(character) for character in WHITE_SPACE])
    begins = ~white & np.append(True, white[:-1])
    return np.cumsum(begins) - 1


def _questions(
    file: _File | list[_Question],
) -> Iterator[tuple[object, str | None, _Question]]:
    """Yields title, context and each question of a file of either format."""
    if isinstance(file, _File):
        for article in file.data:
            for paragraph in article.paragraphs:
                for qa in paragraph.qas:
                    yield article.title, paragraph.context, qa
    else:
        for record in file:
            yield record.title, record.context, record


def _decode(path: str, content: bytes) -> _File | list[_Question]:
    """Parses JSON or JSON lines; the format is inferred from line 1."""
    try:
        json_files.decode(content.strip().partition(b"\n")[0], _Line)
    except ValueError:
        try:
            return json_files.decode(content, _Records).data
        except ValueError:  # articles, or a list of records
            with json_files.reported(path, _EXPECTED):
                return json_files.decode(content, _File | list[_Question])

    # The first line is a complete value, so the file is JSON lines.
    records = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            with json_files.reported(path, line=number):
                records.append(json_files.decode(line, _Question))
    return records


def _example(
    title: object, context: str | None, qa: _Question, needed: str
) -> SquadExample:
    """Converts a question; reads and checks the needed labels."""
    if context is None:
        raise ValueError("context is missing")
    impossible, title = bool(qa.is_impossible), str(title or "")
    if needed == NOTHING:
        return SquadExample(
            str(qa.id), qa.question, context, (), impossible, title
        )
    if qa.answers is None:
        raise ValueError("answers is missing")
    answers = qa.answers

    # Empty lists mark an unanswerable question.
    if isinstance(answers, _Lists):
        answers = _pairs(answers)
        impossible |= not answers and qa.is_impossible is None
    if impossible and answers:
        raise ValueError(
            f"is_impossible is true, but it has {len(answers)} answers; "
            "expected one or the other"
        )
    if not answers and not impossible and needed == SPANS:
        raise ValueError(
            "no answer; expected one to train on, or is_impossible: true"
        )

    # Metrics compare texts only, so starts matter only for training.
    if needed == SPANS:
        for answer in answers:
            check_span(answer, context)
    return SquadExample(
        str(qa.id), qa.question, context, tuple(answers), impossible, title
    )


def _pairs(lists: _Lists) -> list[Answer]:
    """Converts lists of texts and starts to a list of answers."""
    if len(lists.text) != len(lists.answer_start):
        raise ValueError(
            f"answer_start has {len(lists.answer_start)} entries; expected "
            f"{len(lists.text)}, as text"
        )
    return list(map(Answer, lists.text, lists.answer_start))


def check_span(answer: Answer, context: str) -> None:
    """Checks an answer to train on.

    Raises:
        ValueError: the answer is blank, or begins outside of the context.
    """
    start = answer.start
    if not answer.text.strip():
        raise ValueError("answer.text is empty")
    if start is None or not 0 <= start < len(context):
        raise ValueError(
            f"answer.answer_start {start} is outside of the context; expected "
            f"at least 0 and less than {len(context)}"
        )
