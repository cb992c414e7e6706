"""SQuAD files: questions on paragraphs, with spans of these as answers.

    {"version": "1.1", "data": [{"paragraphs": [{
        "context": "It was made in 1895.",
        "qas": [{"id": "q1", "question": "When was it made?",
                 "answers": [{"text": "1895", "answer_start": 15}]}]}]}]}

In SQuAD 2.0, a question also has "is_impossible": if true, there is no answer.
The format of Hugging Face's `datasets` is also supported, as JSON lines or as a
list of records, alone or below "data"; an empty list of texts means no answer:

    {"id": 7, "context": "It was made in 1895.",
     "question": "When was it made?",
     "answers": {"text": ["1895"], "answer_start": [15]}}

Wrong answers are reported as `file: qa id: problem`.
"""

import dataclasses
from collections.abc import Iterator

import msgspec
import numpy as np

from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.common.progress import say

NOTHING = "nothing"  # only questions, for prediction
TEXTS = "texts"  # and texts of answers, for evaluation
SPANS = "spans"  # and starts of answers, for training

_LARGEST = 1 << 30  # bytes, decompressed: SQuAD has 42 MB


class Answer(msgspec.Struct, frozen=True):
    """A labelled answer.

    Attributes:
        text: the answer.
        start: its first character in the context; None: unknown.
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
    context: str | None = None  # of a record


class _Records(msgspec.Struct):
    data: list[_Question]


class _Line(msgspec.Struct):
    context: object


class _Paragraph(msgspec.Struct):
    context: str
    qas: list[_Question]


class _Article(msgspec.Struct):
    paragraphs: list[_Paragraph]


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
        id: its key in files of predictions.
        question: the text of the question.
        context: the paragraph.
        answers: the labels; empty if there is no answer or it is unknown.
        impossible: whether it is labelled as unanswerable.
    """

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] = ()
    impossible: bool = False


@dataclasses.dataclass(frozen=True)
class Dataset:
    """The questions of a file.

    Attributes:
        path: the file.
        examples: its questions, in order.
        has_impossible: whether the file is of version 2: some question has
            `is_impossible`, true or false, or empty lists of answers.
    """

    path: str
    examples: list[SquadExample]
    has_impossible: bool


def read(path: str, needed: str = NOTHING) -> Dataset:
    """Reads a file, plain or compressed with gzip.

    Args:
        path: the file.
        needed: the labels to read and check: `NOTHING`, `TEXTS` or `SPANS`.

    Raises:
        UserError: the file cannot be read or is invalid.
    """
    seen: set[str] = set()
    examples, has_impossible = [], False
    content = json_files.read_bytes(path, _LARGEST, fix="split the file")
    for context, qa in _questions(_decode(path, content)):
        try:
            example = _example(context, qa, needed)
            if example.id in seen:
                raise ValueError("duplicate id")
        except ValueError as error:
            raise UserError(f"qa {qa.id}: {error}", path=path) from None
        seen.add(example.id)
        examples.append(example)
        has_impossible |= example.impossible or qa.is_impossible is not None
    if not examples:
        raise UserError("no question", path=path)
    return Dataset(path, examples, has_impossible)


def check_version(dataset: Dataset, version_2: bool) -> None:
    """Checks the version of a file.

    Args:
        dataset: the file, read with labels.
        version_2: whether --version_2_with_negative is set.

    Raises:
        UserError: the file is of the other version.
    """
    if version_2 and not dataset.has_impossible:
        raise UserError(
            f"qa {dataset.examples[0].id}: no is_impossible; this is a file "
            "of version 1.1",
            path=dataset.path,
            fix="drop --version_2_with_negative, or pass a file of version 2.0",
        )

    # The other way round: questions without an answer, and no flag.
    first = next((x for x in dataset.examples if x.impossible), None)
    if first and not version_2:
        raise UserError(
            f"qa {first.id} has no answer; this is a file of version 2.0",
            path=dataset.path,
            fix="pass --version_2_with_negative",
        )


def word_numbers(context: str) -> np.ndarray:
    """The index of the word of each character; words end at white space.

    White space belongs to the word before it, and at the beginning to -1.

    Args:
        context: a text without halves of surrogate pairs.

    Returns:
        int64 [characters].
    """
    # One number for each character, which UTF-16 would not give.
    codes = np.frombuffer(context.encode("utf-32-le"), "<u4")
    white = np.isin(codes, [ord(character) for character in WHITE_SPACE])
    begins = ~white & np.append(True, white[:-1])
    return np.cumsum(begins) - 1


def _questions(
    file: _File | list[_Question],
) -> Iterator[tuple[str | None, _Question]]:
    """Yields the context and each question of a file of either format."""
    if isinstance(file, _File):
        for article in file.data:
            for paragraph in article.paragraphs:
                for qa in paragraph.qas:
                    yield paragraph.context, qa
    else:
        for record in file:
            yield record.context, record


def _decode(path: str, content: bytes) -> _File | list[_Question]:
    """Parses a file; its first line tells JSON lines from one value."""
    try:
        json_files.decode(content.strip().partition(b"\n")[0], _Line)
    except ValueError:
        try:
            return json_files.decode(content, _Records).data
        except ValueError:  # of the other form
            with json_files.reported(path, _EXPECTED):
                return json_files.decode(content, _File | list[_Question])

    # The first line is a whole value, so each line is one.
    records = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            with json_files.reported(path, line=number):
                records.append(json_files.decode(line, _Question))
    return records


def _example(context: str, qa: _Question, needed: str) -> SquadExample:
    """Converts a question; its labels are read and checked as needed."""
    if context is None:
        raise ValueError("context is missing")
    impossible = bool(qa.is_impossible)
    if needed == NOTHING:
        return SquadExample(str(qa.id), qa.question, context, (), impossible)
    if qa.answers is None:
        raise ValueError("answers is missing")
    answers = qa.answers

    # Lists say by being empty that a question has no answer.
    if isinstance(answers, _Lists):
        answers = _pairs(answers)
        impossible |= not answers and qa.is_impossible is None
    if impossible and answers:
        raise ValueError(
            f"is_impossible is true, and there are {len(answers)} answers; "
            "expected one or the other"
        )
    if not answers and not impossible and needed == SPANS:
        raise ValueError(
            "no answer; expected one to train on, or is_impossible: true"
        )

    # A metric compares texts only: where they start does not matter.
    if needed == SPANS:
        for answer in answers:
            check_span(answer, context)
    return SquadExample(
        str(qa.id), qa.question, context, tuple(answers), impossible
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
        ValueError: it is blank, or begins outside of the context.
    """
    start = answer.start
    if not answer.text.strip():
        raise ValueError("answer.text is empty")
    if start is None or not 0 <= start < len(context):
        raise ValueError(
            f"answer.answer_start {start} is outside of the context; expected "
            f"at least 0 and less than {len(context)}"
        )


def read_files(settings) -> dict[str, Dataset]:
    """Reads the files that the settings require.

    Args:
        settings: those of run_squad.py.

    Returns:
        flag of a file -> its questions.

    Raises:
        UserError: a file is missing, invalid, or of the other version.
    """
    version_2, datasets = settings.version_2_with_negative, {}
    for flag, kind in settings.needed.items():
        path = getattr(settings, flag)
        dataset = datasets[flag] = read(path, kind)
        if kind != NOTHING:
            check_version(dataset, version_2)
        elif not version_2 and any(x.impossible for x in dataset.examples):
            say(
                f"warning: {path} has questions without an answer, but every "
                "question gets one; see --version_2_with_negative"
            )
    return datasets
