"""Splits questions and paragraphs into windows of token ids.

    [CLS] when was it made ? [SEP] it was made in 18 ##95 .  [SEP]
                                   |--- a window ---|
                                        stride |--- the next one ---|

A paragraph that is too long for one sequence is split into overlapping
windows. The tokenizer returns the character offsets of each token.
"""

import collections
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bert.data import feature_names, sequences
from bert.data.records.encoding import Feature, RecordSchema
from bert.data.sequences import TokenWindow
from bert.data.text import vocabulary
from bert.data.text.tokenizer import Tokenizer, Tokens
from bert.tasks.squad.examples import SquadExample, word_numbers
from bert.tasks.squad.settings import Settings

_SHUFFLE_SEED = 12345  # for training questions, as in the original
_AT_ONCE = 1024  # number of questions to tokenize together

# As in the original's train.tf_record, without unique_ids and is_impossible,
# which the training does not read.
TRAINING_SCHEMA: RecordSchema = {
    feature_names.START_POSITIONS: Feature(),
    feature_names.END_POSITIONS: Feature(),
}


class Span(NamedTuple):
    """Tokens of a paragraph from `start` to `end`, inclusive."""

    start: int
    end: int


# Labelled answers that are skipped or changed in training.
ABSENT = "not in the context at answer_start; question skipped"
WIDER = "not at token boundaries; trained on a longer answer"
UNCOVERED = "not complete in any window; trained as unanswerable"


def max_context(windows: list[TokenWindow], count: int) -> NDArray:
    """Finds the window in which each token has its maximum context.

    As in the original, the context of a token in a window is the smaller of
    the numbers of tokens to its left and right. To favour long windows, 0.01
    is added per token of the window. Ties are won by the first window.

    Args:
        windows: the result of `sequences.cut`.
        count: int. Number of tokens of the paragraph.

    Returns:
        int32 [count], indices of windows.
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
    tokens: Tokens, context: str, text: str, start: int, ids: list[int]
) -> Span | None:
    """Finds the tokens of an answer.

    As in the original, the tokens of the answer are searched for in the words
    that contain it, so `1895` is found in `(1895-1943).`. If they are not
    found, the span is all these words. If they occur several times, the span
    is at `start`, where the original takes the first.

    Args:
        tokens: tokens of the context.
        context: the paragraph.
        text: the answer, not blank.
        start: the first character of the answer in the context.
        ids: token ids of the answer.

    Returns:
        the span, or None if the words at `start` do not contain the answer.
    """
    # A label may begin or end with blanks, unlike tokens.
    start += len(text) - len(text.lstrip())
    text = text.strip()
    words = word_numbers(context)
    last = min(start + len(text), len(context)) - 1
    if start >= len(context) or words[start] < 0 or words[last] < 0:
        return None

    # The whole words around the answer, compared with normalized blanks.
    first = np.searchsorted(words, words[start], "left")
    behind = np.searchsorted(words, words[last], "right")
    found = context[first:behind]
    if " ".join(text.split()) not in " ".join(found.split()):
        return None

    # The tokens of these words, if they have any.
    of_tokens = words[tokens.starts]
    first = int(np.searchsorted(of_tokens, words[start], "left"))
    behind = int(np.searchsorted(of_tokens, words[last], "right"))
    if first == behind:
        return None
    return _improve_answer_span(tokens, Span(first, behind - 1), start, ids)


def detokenize(tokens: Tokens, context: str, span: Span) -> str:
    """The text of a span of tokens."""
    return context[tokens.starts[span.start] : tokens.limits[span.end]]


class WindowMaker:
    """Converts questions to windows.

    Args:
        tokenizer: the model's tokenizer.
        settings: the settings of the script, with the sizes of windows.
        report: function, called with the number of questions done.

    Attributes:
        lost: reason -> ids of questions whose answers were lost so far.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        settings: Settings,
        report: Callable[[int], None] = lambda done: None,
    ):
        self._tokenizer, self._settings = tokenizer, settings
        self._report = report
        self._done = 0
        self.lost = collections.defaultdict(list)

    def training_records(self, examples: list[SquadExample]) -> Iterator[dict]:
        """Yields the windows of labelled questions, in the original's order.

        A window without the complete answer gets the label 0, 0 (`[CLS]`).

        Args:
            examples: questions read with `examples.SPANS`; only their first
                answers are used.

        Yields:
            feature name -> values, as in `TRAINING_SCHEMA`.
        """
        examples = list(examples)
        random.Random(_SHUFFLE_SEED).shuffle(examples)
        for some in _chunks(examples):
            texts = [x.answers[0].text if x.answers else "" for x in some]
            answers = self._ids(texts)
            for parts, ids in zip(self._tokenized(some), answers):
                yield from self._labelled(*parts, ids)

    def prediction_windows(
        self, examples: list[SquadExample]
    ) -> Iterator[list[dict]]:
        """Yields the windows of each question, with character offsets.

        Args:
            examples: the questions.

        Yields:
            a list of dicts, feature name -> values: input_ids, segment_ids;
            for each token its character offsets and whether this window has
            its maximum context. A context without tokens has no windows.
        """
        for some in _chunks(examples):
            for _, question, tokens in self._tokenized(some):
                windows = self._windows(question, tokens)
                owners = max_context(windows, len(tokens.ids))
                around = (len(question) + 2, 1)  # no context: zeros
                records = []
                for k, window in enumerate(windows):
                    here = slice(window.start, window.start + window.length)
                    features = {
                        feature_names.TOKEN_STARTS: tokens.starts[here],
                        feature_names.TOKEN_LIMITS: tokens.limits[here],
                        feature_names.TOKEN_IS_MAX_CONTEXT: owners[here] == k,
                    }
                    records.append(
                        self._record(question, tokens.ids[here])
                        | {x: np.pad(features[x], around) for x in features}
                    )
                yield records

    def _labelled(self, example, question, tokens, ids):
        """Yields the windows of one question with start and end positions."""
        span = None
        if not example.impossible:
            answer = example.answers[0]
            span = find_span(
                tokens, example.context, answer.text, answer.start, ids
            )
            if span is None:
                self.lost[ABSENT].append(example.id)
                return

            # The longer answer is used for training, and reported.
            found = detokenize(tokens, example.context, span)
            if found.split() != answer.text.split():
                self.lost[WIDER].append(example.id)

        # At least one window should contain the complete answer.
        covered = example.impossible
        for window in self._windows(question, tokens):
            start, end = 0, 0
            limit = window.start + window.length
            if span and window.start <= span.start and span.end < limit:
                offset = len(question) + 2 - window.start
                start, end = span.start + offset, span.end + offset
                covered = True
            here = slice(window.start, limit)
            yield {
                **self._record(question, tokens.ids[here]),
                feature_names.START_POSITIONS: [start],
                feature_names.END_POSITIONS: [end],
            }
        if not covered:
            self.lost[UNCOVERED].append(example.id)

    def _windows(self, question: NDArray, tokens: Tokens) -> list[TokenWindow]:
        size = self._settings.max_seq_length - len(question) - 3
        return sequences.cut(len(tokens.ids), size, self._settings.doc_stride)

    def _record(self, question, ids) -> dict:
        """Features of `[CLS] question [SEP] window [SEP]`."""
        head, tail = len(question) + 2, len(ids) + 1
        vocab = self._tokenizer.vocab
        joined = np.full(head + tail, vocab[vocabulary.SEP], np.int32)
        joined[0] = vocab[vocabulary.CLS]
        joined[1 : head - 1] = question
        joined[head:-1] = ids
        return {
            feature_names.INPUT_IDS: joined,
            feature_names.SEGMENT_IDS: np.repeat(
                np.array([0, 1], np.int32), [head, tail]
            ),
        }

    def _tokenized(
        self, examples: list[SquadExample]
    ) -> Iterator[tuple[SquadExample, NDArray, Tokens]]:
        """Yields examples, ids of the question, and tokens of the context."""
        # Several questions share a context, which is tokenized once.
        contexts = list(dict.fromkeys(x.context for x in examples))
        tokens = dict(zip(contexts, self._tokenizer.with_offsets(contexts)))
        questions = self._ids([x.question for x in examples])
        longest = self._settings.max_query_length
        for example, ids in zip(examples, questions):
            yield example, ids[:longest], tokens[example.context]
            self._done += 1
            self._report(self._done)

    def _ids(self, texts: list[str]) -> list[NDArray]:
        # Half a surrogate pair is a question mark.
        texts = [x.encode(errors="replace").decode() for x in texts]
        ids, ends = self._tokenizer.fast.ids_and_ends(texts)
        return np.split(ids, ends[:-1])


def _improve_answer_span(tokens: Tokens, words: Span, start: int, ids) -> Span:
    """Finds the tokens of the answer within the words around it."""
    count, best = len(ids), None
    if not count:
        return words
    limit = max(words.start, words.end + 2 - count)
    here = tokens.ids[words.start : limit]
    for first in words.start + np.flatnonzero(here == ids[0]):
        if np.array_equal(tokens.ids[first : first + count], ids):
            first = int(first)
            span = Span(first, first + count - 1)
            if tokens.starts[first] == start:
                return span
            best = best or span
    return best or words


def _chunks(examples: list[SquadExample]) -> Iterator[list[SquadExample]]:
    for start in range(0, len(examples), _AT_ONCE):
        yield examples[start : start + _AT_ONCE]
