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
from collections.abc import Iterator
from typing import Any

import numpy as np

from common import storage
from common.errors import UserError
from common.formats import json_data, json_files
from common.formats.json_files import Kind
from common.progress import say

NOTHING = "nothing"  # only questions, for prediction
TEXTS = "texts"  # and texts of answers, for evaluation
SPANS = "spans"  # and starts of answers, for training

_ARTICLE = {"paragraphs": Kind(list)}
_PARAGRAPH = {"context": Kind(str), "qas": Kind(list)}
_RECORD = {"context": Kind(str)}
_ID = {"id": Kind(str)}
_QUESTION = {
    "question": Kind(str),
    "is_impossible": Kind(bool, is_required=False),
}
_ANSWERS = {"answers": Kind(list)}
_LISTS = {"text": Kind(list), "answer_start": Kind(list)}
_TEXT = {"text": Kind(str)}
_SPAN = {"text": Kind(str), "answer_start": Kind(int)}

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


def read(
    path: str,
    needed: str = NOTHING,
    max_json_mb: int = json_data.LARGEST_MB,
) -> Dataset:
    """Reads a file, plain or compressed with gzip.

    Args:
        path: the file.
        needed: the labels to read and check: `NOTHING`, `TEXTS` or `SPANS`.
        max_json_mb: megabytes of the largest file, decompressed.

    Raises:
        UserError: the file cannot be read or is invalid.
    """
    content = json_data.read(path, max_json_mb)
    reader = _Reader(needed)
    with json_data.reported(path):
        examples = [reader.example(*found) for found in _questions(content)]
        if not examples:
            raise ValueError("no question")
    return Dataset(path, examples, reader.has_impossible)


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


def _questions(content: Any) -> Iterator[tuple[str, dict, str]]:
    """Yields context, question and its location in a file of either format."""
    if isinstance(content, dict) and isinstance(content.get("data"), list):
        for i, article in enumerate(content["data"]):
            json_data.check(article, _ARTICLE, f"data[{i}].")
            for j, paragraph in enumerate(article["paragraphs"]):
                location = f"data[{i}].paragraphs[{j}]."
                json_data.check(paragraph, _PARAGRAPH, location)
                for k, qa in enumerate(paragraph["qas"]):
                    yield paragraph["context"], qa, f"{location}qas[{k}]."
        return
    if isinstance(content, dict) and "context" in content:  # a single line
        content = [content]
    if not isinstance(content, list):
        raise ValueError(
            f'found {json_files.describe(content)} without a list "data"; '
            'expected {"data": [{"paragraphs": [...]}]}, as in SQuAD, or JSON '
            "lines with id, context, question and answers"
        )
    for i, record in enumerate(content):
        json_data.check(record, _RECORD, f"record {i}: ")
        yield record["context"], record, f"record {i}: "


class _Reader:
    """Reads the questions of one file; its errors are `ValueError`s."""

    def __init__(self, needed: str):
        self._needed = needed
        self._seen: set[str] = set()
        self.has_impossible = False

    def example(self, context: str, qa: Any, location: str) -> SquadExample:
        if isinstance(qa, dict) and type(qa.get("id")) is int:
            qa = {**qa, "id": str(qa["id"])}  # like a JSON key
        json_data.check(qa, _ID, location)
        key = qa["id"]
        location = f"qa {key}: "
        if key in self._seen:
            raise ValueError(f"{location}duplicate id")
        self._seen.add(key)
        json_data.check(qa, _QUESTION, location)
        question, impossible = qa["question"], qa.get("is_impossible", False)
        self.has_impossible |= "is_impossible" in qa
        if self._needed == NOTHING:
            return SquadExample(key, question, context, (), impossible)
        found = qa.get("answers")
        if isinstance(found, dict):
            found = _pairs(found, location)
            if not found and "is_impossible" not in qa:
                self.has_impossible = impossible = True
        else:
            json_data.check(qa, _ANSWERS, location)
        if impossible and found:
            raise ValueError(
                f"{location}is_impossible is true, and there are {len(found)} "
                "answers; expected one or the other"
            )
        if not found and not impossible and self._needed == SPANS:
            raise ValueError(
                f"{location}no answer; expected one to train on, or "
                "is_impossible: true"
            )
        answers = tuple(self._answer(x, context, location) for x in found)
        return SquadExample(key, question, context, answers, impossible)

    def _answer(self, answer: Any, context: str, location: str) -> Answer:
        location = f"{location}answer."
        if self._needed == TEXTS:
            json_data.check(answer, _TEXT, location)
            return Answer(answer["text"])
        json_data.check(answer, _SPAN, location)
        text, start = answer["text"], answer["answer_start"]
        if not text.strip():
            raise ValueError(f"{location}text is empty")
        if not 0 <= start < len(context):
            raise ValueError(
                f"{location}answer_start {start} is outside of the context; "
                f"expected at least 0 and less than {len(context)}"
            )
        return Answer(text, start)


def _pairs(lists: dict, location: str) -> list[dict]:
    """Converts lists of texts and starts to a list of answers."""
    json_data.check(lists, _LISTS, location)
    texts, starts = lists["text"], lists["answer_start"]
    if len(texts) != len(starts):
        raise ValueError(
            f"{location}answer_start has {len(starts)} entries; expected "
            f"{len(texts)}, as text"
        )
    return [
        {"text": text, "answer_start": start}
        for text, start in zip(texts, starts, strict=True)
    ]


def read_for(
    path: str, flag: str, needed: str, version_2: bool, max_json_mb: int
) -> Dataset:
    """Reads the questions of a file that a flag names.

    Args:
        path: one file.
        flag: the name of the flag, for messages.
        needed, max_json_mb: see `read`.
        version_2: whether --version_2_with_negative is set.

    Raises:
        UserError: the file is missing, invalid, or of the other version.
    """
    if len(storage.list_files(path, flag)) != 1:
        raise UserError(f"--{flag}={path!r}", expected="one file")
    dataset = read(path, needed, max_json_mb)
    if needed != NOTHING:
        check_version(dataset, version_2)
    elif not version_2 and any(x.impossible for x in dataset.examples):
        say(
            f"warning: {path} has questions without an answer, but every "
            "question gets one; see --version_2_with_negative"
        )
    return dataset
