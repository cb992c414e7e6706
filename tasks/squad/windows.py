"""Questions on paragraphs to rows of pieces: SQuAD's windows.

    [CLS] when was it made ? [SEP] it was made in 18 ##95 .  [SEP]
                                   |--- a window ---|
                                        stride |--- the next one ---|

A paragraph that is too long for a row is cut into windows that overlap. Where
a piece comes from is known to the character: the tokenizer tells.
"""

import dataclasses
import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from data import features
from data.records.example_files import Feature, Schema
from tasks.squad.examples import Example, word_numbers

FIRST_ID = 1000000000  # of the windows, as the original counts them
_SHUFFLE_SEED = 12345  # of the training questions, fixed in the original
_AT_ONCE = 1024  # questions that are tokenized together

# The original's train.tf_record.
TRAINING_SCHEMA: Schema = {
    features.UNIQUE_IDS: Feature(),
    features.START_POSITIONS: Feature(),
    features.END_POSITIONS: Feature(),
    features.IS_IMPOSSIBLE: Feature(),
}
# The original's eval.tf_record, and what it keeps in memory.
PREDICTION_SCHEMA: Schema = {
    features.UNIQUE_IDS: Feature(),
    features.EXAMPLE_INDEX: Feature(),
    features.PIECE_STARTS: Feature(sequence=True),
    features.PIECE_LIMITS: Feature(sequence=True),
    features.TOKEN_IS_MAX_CONTEXT: Feature(sequence=True),
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """How windows are cut.

    Attributes:
        max_seq_length: S, pieces of a row at most.
        doc_stride: pieces from the start of a window to that of the next.
        max_query_length: a longer question is cut.
    """

    max_seq_length: int
    doc_stride: int
    max_query_length: int

    def __post_init__(self):
        assert self.doc_stride > 0, self.doc_stride
        assert self.max_seq_length > self.max_query_length + 3


class Pieces(NamedTuple):
    """A text's pieces.

    ids: int32 [N].
    starts: int32 [N], the first character that each was made of.
    limits: int32 [N], the one behind its last.
    """

    ids: np.ndarray
    starts: np.ndarray
    limits: np.ndarray


class Span(NamedTuple):
    """Pieces of the paragraph from `start` to `end`, both included."""

    start: int
    end: int


class Window(NamedTuple):
    """Pieces of a paragraph: `length` of them, from number `start` on."""

    start: int
    length: int


class Lost(NamedTuple):
    """An answer that training sees wrongly or not at all.

    id: of the question.
    reason: in a few words.
    text: what is there instead.
    """

    id: str
    reason: str
    text: str


ABSENT = "not in the context where answer_start points; left out"
WIDER = "pieces of the vocabulary do not end where it does; trained on more"
UNCOVERED = "whole in no window; trained on as if there were none"


def cut(count: int, room: int, stride: int) -> list[Window]:
    """Cuts a paragraph into windows, as the original does.

        count = 10, room = 6, stride = 3
        0 1 2 3 4 5
              3 4 5 6 7 8
                    6 7 8 9

    Args:
        count: pieces of the paragraph.
        room: pieces of a window at most.
        stride: see `Settings.doc_stride`; more than `room` counts as `room`.

    Returns:
        windows that cover all pieces; none if there are none.
    """
    assert room > 0 and stride > 0, (room, stride)
    windows = []
    for start in range(0, count, min(room, stride)):
        windows.append(Window(start, min(room, count - start)))
        if start + room >= count:
            break
    return windows


def max_context(windows: list[Window], count: int) -> np.ndarray:
    """The window in which each piece has most context, as the original says.

    What counts is the smaller of the pieces to its left and to its right;
    with 0.01 for each piece of the window, in favour of whole ones. The first
    of equals wins.

    Args:
        windows: from `cut`.
        count: pieces of the paragraph.

    Returns:
        int32 [count], numbers of windows.
    """
    best = np.full(count, -1.0)
    owners = np.zeros(count, np.int32)
    for number, (start, length) in enumerate(windows):
        left = np.arange(length)
        scores = np.minimum(left, length - 1 - left) + 0.01 * length
        here = slice(start, start + length)
        better = scores > best[here]
        best[here][better] = scores[better]
        owners[here][better] = number
    return owners


def find_span(
    pieces: Pieces, context: str, text: str, start: int, ids: list[int]
) -> Span | None:
    """The pieces of an answer.

    As in the original, the answer is looked for in the words it is in, so
    that `1895` is found in `(1895-1943).`; if it is not there, the answer is
    all these words. Of several places the one at `start` is taken, where the
    original takes the first.

    Args:
        pieces: of the context.
        context: the paragraph.
        text: the answer, not blank.
        start: its first character in the context.
        ids: pieces of the answer.

    Returns:
        None: the words at `start` do not hold the answer.
    """
    start += len(text) - len(text.lstrip())
    text = text.strip()
    words = word_numbers(context)
    last = min(start + len(text), len(context)) - 1
    if start >= len(context) or words[start] < 0 or words[last] < 0:
        return None
    first = np.searchsorted(words, words[start], "left")
    behind = np.searchsorted(words, words[last], "right")
    found = context[first:behind]
    if " ".join(text.split()) not in " ".join(found.split()):
        return None
    of_pieces = words[pieces.starts]
    first = int(np.searchsorted(of_pieces, words[start], "left"))
    behind = int(np.searchsorted(of_pieces, words[last], "right"))
    if first == behind:
        return None
    return _improve(pieces, Span(first, behind - 1), start, ids)


def detokenize(pieces: Pieces, context: str, span: Span) -> str:
    """The text of a span."""
    return context[pieces.starts[span.start] : pieces.limits[span.end]]


class Maker:
    """Makes rows of questions.

    Args:
        tokenizer: a `text_ops.GraphTokenizer`.
        settings: how windows are cut.
        tell: called with the number of questions that are done.

    Attributes:
        lost: answers that were lost, so far.
    """

    def __init__(
        self,
        tokenizer,
        settings: Settings,
        tell: Callable[[int], None] = lambda done: None,
    ):
        self._tokenizer, self._settings, self._tell = tokenizer, settings, tell
        self._done = 0
        self.lost: list[Lost] = []

    def training_rows(self, examples: list[Example]) -> Iterator[dict]:
        """Yields the windows of labelled questions, shuffled as the original.

        A window without the whole answer is labelled 0, 0: `[CLS]`.

        Args:
            examples: with `squad.SPANS`; of several answers, the first is
                taken.

        Yields:
            rows of `TRAINING_SCHEMA`.
        """
        examples = list(examples)
        random.Random(_SHUFFLE_SEED).shuffle(examples)
        number = itertools.count(FIRST_ID)
        for some in _chunks(examples):
            texts = [x.answers[0].text if x.answers else "" for x in some]
            answers = self._ids(texts)
            for parts, ids in zip(self._tokenized(some), answers):
                yield from self._labelled(*parts, ids, number)

    def prediction_rows(self, examples: Iterable[Example]) -> Iterator[dict]:
        """Yields the windows of questions, in order, with their characters.

        Yields:
            rows of `PREDICTION_SCHEMA`; there is none of a question whose
            context has no piece.
        """
        number = itertools.count(FIRST_ID)
        index = itertools.count()
        for some in _chunks(examples):
            for _, question, pieces in self._tokenized(some):
                place = next(index)
                windows = self._windows(question, pieces)
                owners = max_context(windows, len(pieces.ids))
                for k, window in enumerate(windows):
                    here = slice(window.start, window.start + window.length)
                    around = (len(question) + 2, 1)
                    yield {
                        **self._row(question, pieces.ids[here], next(number)),
                        features.EXAMPLE_INDEX: [place],
                        features.PIECE_STARTS: np.pad(
                            pieces.starts[here], around
                        ),
                        features.PIECE_LIMITS: np.pad(
                            pieces.limits[here], around
                        ),
                        features.TOKEN_IS_MAX_CONTEXT: np.pad(
                            owners[here] == k, around
                        ),
                    }

    def _labelled(self, example, question, pieces, ids, number):
        """Yields the windows of one question with start and end."""
        span = None
        if not example.impossible:
            answer = example.answers[0]
            span = find_span(
                pieces, example.context, answer.text, answer.start, ids
            )
            if span is None:
                self.lost.append(
                    Lost(
                        example.id,
                        ABSENT,
                        example.context[answer.start :][: len(answer.text)],
                    )
                )
                return
            found = detokenize(pieces, example.context, span)
            if found.split() != answer.text.split():
                self.lost.append(Lost(example.id, WIDER, found))
        covered = example.impossible
        for window in self._windows(question, pieces):
            start, end = 0, 0
            limit = window.start + window.length
            if span and window.start <= span.start and span.end < limit:
                offset = len(question) + 2 - window.start
                start, end = span.start + offset, span.end + offset
                covered = True
            here = slice(window.start, limit)
            yield {
                **self._row(question, pieces.ids[here], next(number)),
                features.START_POSITIONS: [start],
                features.END_POSITIONS: [end],
                features.IS_IMPOSSIBLE: [int(example.impossible)],
            }
        if not covered:
            self.lost.append(
                Lost(example.id, UNCOVERED, example.answers[0].text)
            )

    def _windows(self, question: np.ndarray, pieces: Pieces) -> list[Window]:
        room = self._settings.max_seq_length - len(question) - 3
        return cut(len(pieces.ids), room, self._settings.doc_stride)

    def _row(self, question, ids, number: int) -> dict:
        """`[CLS] question [SEP] window [SEP]`."""
        head, tail = len(question) + 2, len(ids) + 1
        row = np.full(head + tail, self._tokenizer.sep_id, np.int32)
        row[0] = self._tokenizer.cls_id
        row[1 : head - 1] = question
        row[head:-1] = ids
        return {
            features.UNIQUE_IDS: [number],
            features.INPUT_IDS: row,
            features.SEGMENT_IDS: np.repeat(
                np.array([0, 1], np.int32), [head, tail]
            ),
        }

    def _tokenized(self, examples: list[Example]) -> Iterator[tuple]:
        """Yields example, ids of its question, pieces of its context."""
        contexts = list(dict.fromkeys(x.context for x in examples))
        pieces = dict(zip(contexts, tokenize(self._tokenizer, contexts)))
        questions = self._ids([x.question for x in examples])
        longest = self._settings.max_query_length
        for example, ids in zip(examples, questions):
            yield example, ids[:longest], pieces[example.context]
            self._done += 1
            self._tell(self._done)

    def _ids(self, texts: list[str]) -> list[np.ndarray]:
        ids = self._tokenizer.tokenize([x.encode() for x in texts])
        ids = ids.merge_dims(1, 2)
        return np.split(ids.values.numpy(), ids.row_splits.numpy()[1:-1])


def tokenize(tokenizer, texts: list[str]) -> list[Pieces]:
    """Splits texts into pieces with their places.

    Args:
        tokenizer: a `text_ops.GraphTokenizer`.
        texts: without halves of surrogate pairs.
    """
    raw = [text.encode() for text in texts]
    ids, starts, limits = tokenizer.tokenize_with_offsets(raw)
    splits = ids.merge_dims(1, 2).row_splits.numpy()
    ids = ids.flat_values.numpy()
    starts = starts.flat_values.numpy().astype(np.int32)
    limits = limits.flat_values.numpy().astype(np.int32)
    found = []
    for text, encoded, a, b in zip(texts, raw, splits, splits[1:]):
        pieces = Pieces(ids[a:b], starts[a:b], limits[a:b])
        if not text.isascii():
            begins = np.frombuffer(encoded, np.uint8) & 0xC0 != 0x80
            # Characters before each byte.
            before = np.append(0, np.cumsum(begins)).astype(np.int32)
            pieces = pieces._replace(
                starts=before[pieces.starts], limits=before[pieces.limits]
            )
        found.append(pieces)
    return found


def _improve(pieces: Pieces, words: Span, start: int, ids) -> Span:
    """The place of the answer's pieces in those of its words."""
    count, best = len(ids), None
    if not count:
        return words
    limit = max(words.start, words.end + 2 - count)
    here = pieces.ids[words.start : limit]
    for first in words.start + np.flatnonzero(here == ids[0]):
        if np.array_equal(pieces.ids[first : first + count], ids):
            first = int(first)
            span = Span(first, first + count - 1)
            if pieces.starts[first] == start:
                return span
            best = best or span
    return best or words


def _chunks(examples: Iterable[Example]) -> Iterator[list[Example]]:
    examples = iter(examples)
    while some := list(itertools.islice(examples, _AT_ONCE)):
        yield some
