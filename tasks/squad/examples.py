"""SQuAD files: questions on paragraphs, with spans of these as answers.

    {"version": "1.1", "data": [{"paragraphs": [{
        "context": "It was made in 1895.",
        "qas": [{"id": "q1", "question": "When was it made?",
                 "answers": [{"text": "1895", "answer_start": 15}]}]}]}]}

In SQuAD 2.0, a question also has "is_impossible": if true, there is no answer.
The format of Hugging Face's `datasets` is also supported, as JSON lines or as a
list of records, where an empty list of texts means no answer:

    {"id": 7, "context": "It was made in 1895.",
     "question": "When was it made?",
     "answers": {"text": ["1895"], "answer_start": [15]}}

Errors are reported as `file: qa id: problem`.
"""

import dataclasses
import gzip
import json
import zlib
from collections.abc import Iterator

import numpy as np

from common import limits, storage, surrogates
from common.errors import UserError
from common.progress import say

NOTHING = "nothing"  # only questions, for prediction
TEXTS = "texts"  # and texts of answers, for evaluation
SPANS = "spans"  # and starts of answers, for training

WHITE_SPACE = " \t\r\n\u202f"  # between words, as in the original


@dataclasses.dataclass(frozen=True)
class Answer:
    """A labelled answer.

    Attributes:
        text: the answer.
        start: its first character in the context; -1 if it was not read.
    """

    text: str
    start: int = -1


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
    reader = _Reader(path, needed)
    content, is_flat = _parse(path)
    return reader.dataset(
        reader.records(content) if is_flat else reader.questions(content)
    )


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
    first = next((x for x in dataset.examples if x.impossible), None)
    if first and not version_2:
        raise UserError(
            f"qa {first.id} has no answer; this is a file of version 2.0",
            path=dataset.path,
            fix="pass --version_2_with_negative",
        )


def read_json(path: str):
    """Reads a JSON file or JSON lines, plain or compressed with gzip.

    Args:
        path: the file.

    Returns:
        the value; for JSON lines, the list of values.

    Raises:
        UserError: the file cannot be read or is not JSON.
    """
    try:
        with storage.open_file(path, "rb") as file:
            raw = limits.read_json(file, path)
        text = raw.decode("utf-8-sig")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(
            f"damaged gzip file: {error}", path=path, fix="download it again"
        ) from None
    except UnicodeDecodeError as error:
        raise UserError(
            f"invalid UTF-8 byte {raw[error.start]:#04x} at byte {error.start}",
            path=path,
            fix="convert the file to UTF-8",
        ) from None
    except OSError as error:
        raise UserError(
            f"cannot be read: {error.strerror or error}", path=path
        ) from None
    passed = 0
    try:
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            if error.msg != "Extra data":
                raise
        values = []
        for line in text.split("\n"):
            if line.strip():
                values.append(json.loads(line))
            passed += 1
        return values
    except json.JSONDecodeError as error:
        raise UserError(
            f"no JSON: {error.msg}, column {error.colno}",
            path=path,
            line=passed + error.lineno,
        ) from None
    except (RecursionError, ValueError) as error:
        raise UserError(f"no JSON: {error}", path=path) from None


def word_numbers(context: str) -> np.ndarray:
    """The index of the word of each character; words end at white space.

    White space belongs to the word before it, and at the beginning to -1.

    Args:
        context: a text without halves of surrogate pairs.

    Returns:
        int64 [characters].
    """
    codes = np.frombuffer(context.encode("utf-32-le"), "<u4")
    white = np.isin(codes, [ord(character) for character in WHITE_SPACE])
    begins = ~white & np.append(True, white[:-1])
    return np.cumsum(begins) - 1


def _parse(path: str) -> tuple[list, bool]:
    """Articles or records of `datasets`, and whether they are records."""
    content = read_json(path)
    if isinstance(content, list):
        return content, True
    if isinstance(content, dict):
        if isinstance(content.get("data"), list):
            return content["data"], False
        if "context" in content:  # a single line
            return [content], True
    raise UserError(
        f'found {_kind(content)} without a list "data"',
        path=path,
        expected='{"data": [{"paragraphs": [...]}]}, as in SQuAD, or JSON '
        "lines with id, context, question and answers",
    )


class _Reader:
    """Reads one file; keeps track of the location for messages."""

    def __init__(self, path: str, needed: str):
        self._path, self._needed = path, needed
        self._seen: set[str] = set()
        self._has_impossible = False

    def dataset(self, questions: Iterator[tuple[str, dict, str]]) -> Dataset:
        examples = [
            self._example(qa, context, location)
            for context, qa, location in questions
        ]
        if not examples:
            raise UserError("no question", path=self._path)
        return Dataset(self._path, examples, self._has_impossible)

    def records(self, data: list) -> Iterator[tuple[str, dict, str]]:
        """As `questions`, for records that each have a context."""
        for i, record in enumerate(data):
            location = f"record {i}"
            yield (
                self._field(record, "context", str, location),
                record,
                location,
            )

    def questions(self, data: list) -> Iterator[tuple[str, dict, str]]:
        """Yields context, question and its location in the file."""
        for i, article in enumerate(data):
            location = f"data[{i}]"
            paragraphs = self._field(article, "paragraphs", list, location)
            for j, paragraph in enumerate(paragraphs):
                location = f"data[{i}].paragraphs[{j}]"
                context = self._field(paragraph, "context", str, location)
                qas = self._field(paragraph, "qas", list, location)
                for k, qa in enumerate(qas):
                    yield context, qa, f"{location}.qas[{k}]"

    def _example(self, qa, context: str, location: str) -> SquadExample:
        key = self._id(qa, location)
        location = f"qa {key}"
        if key in self._seen:
            raise self._error(location, "duplicate id")
        self._seen.add(key)
        self._check_unicode(context, "context", location)
        question = self._field(qa, "question", str, location)
        self._check_unicode(question, "question", location)
        impossible = qa.get("is_impossible", False)
        if not isinstance(impossible, bool):
            raise self._error(
                location,
                f"is_impossible is {_kind(impossible)}",
                "true or false",
            )
        self._has_impossible |= "is_impossible" in qa
        if self._needed == NOTHING:
            return SquadExample(key, question, context, (), impossible)
        found = qa.get("answers")
        if isinstance(found, dict):
            found = self._pairs(found, location)
            if not found and "is_impossible" not in qa:
                self._has_impossible = impossible = True
        else:
            found = self._field(qa, "answers", list, location)
        answers = self._answers(found, context, impossible, location)
        return SquadExample(key, question, context, answers, impossible)

    def _id(self, qa, location: str) -> str:
        """The id of a question; a number becomes text, like a JSON key."""
        if isinstance(qa, dict) and type(qa.get("id")) is int:
            return str(qa["id"])
        key = self._field(qa, "id", str, location)
        self._check_unicode(key, "id", location)
        return key

    def _pairs(self, lists: dict, location: str) -> list[dict]:
        """Converts lists of texts and starts to a list of answers."""
        texts = self._field(lists, "text", list, location)
        starts = self._field(lists, "answer_start", list, location)
        if len(texts) != len(starts):
            raise self._error(
                location,
                f"answer_start has {len(starts)} entries",
                f"{len(texts)}, as text",
            )
        return [
            {"text": text, "answer_start": start}
            for text, start in zip(texts, starts, strict=True)
        ]

    def _answers(
        self, found: list, context: str, impossible: bool, location: str
    ) -> tuple[Answer, ...]:
        if impossible and found:
            raise self._error(
                location,
                f"is_impossible is true, and there are {len(found)} answers",
                "one or the other",
            )
        if not found and not impossible and self._needed == SPANS:
            raise self._error(
                location,
                "no answer",
                "one to train on, or is_impossible: true",
            )
        return tuple(self._answer(x, context, location) for x in found)

    def _answer(self, answer, context: str, location: str) -> Answer:
        text = self._field(answer, "text", str, location)
        self._check_unicode(text, "an answer", location)
        if self._needed == TEXTS:
            return Answer(text)
        start = self._field(answer, "answer_start", int, location)
        if not text.strip():
            raise self._error(location, "an answer without text")
        if not 0 <= start < len(context):
            raise self._error(
                location,
                f"answer_start {start} is outside of the context",
                f"at least 0 and less than {len(context)}",
            )
        return Answer(text, start)

    def _field(self, record, name: str, kind: type, location: str):
        """A field of a JSON object; checks its type."""
        if not isinstance(record, dict):
            raise self._error(location, f"found {_kind(record)}", "an object")
        if name not in record:
            raise self._error(location, f"no {name}")
        value = record[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self._error(
                location, f"{name} is {_kind(value)}", _NAMES[kind]
            )
        return value

    def _check_unicode(self, text: str, name: str, location: str) -> None:
        surrogates.check(text, f"{location}: {name}", self._path)

    def _error(
        self, location: str, found: str, expected: str | None = None
    ) -> UserError:
        return UserError(
            f"{location}: {found}", path=self._path, expected=expected
        )


_NAMES = {
    str: "a string",
    int: "a whole number",
    list: "a list",
    dict: "an object",
    bool: "true or false",
    float: "a number",
    type(None): "null",
}


def _kind(value) -> str:
    return _NAMES[type(value)]


def read_for(path: str, flag: str, needed: str, version_2: bool) -> Dataset:
    """Reads the questions of a file that a flag names.

    Args:
        path: one file.
        flag: the name of the flag, for messages.
        needed: see `read`.
        version_2: whether --version_2_with_negative is set.

    Raises:
        UserError: the file is missing, invalid, or of the other version.
    """
    if len(storage.list_files(path, flag)) != 1:
        raise UserError(f"--{flag}={path!r}", expected="one file")
    dataset = read(path, needed)
    if needed != NOTHING:
        check_version(dataset, version_2)
    elif not version_2 and any(x.impossible for x in dataset.examples):
        say(
            f"warning: {path} has questions without an answer, but every "
            "question gets one; see --version_2_with_negative"
        )
    return dataset
