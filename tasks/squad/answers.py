"""Logits of windows to answers: n-best spans and the odds of none.

    start_logits, end_logits of each window
      -> the best starts and ends, paired      candidates
      -> one entry for each text               n-best
      -> probabilities, odds of no answer      Answers

As google-research/bert `run_squad.py` does it, with two exceptions: padding
takes none of the places of the best starts and ends, and a question without
any span has the empty answer instead of a crash or the word "empty".
"""

import dataclasses
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from common import storage
from data import features
from data.text.tokenization import BasicTokenizer
from tasks.squad import examples as squad
from tasks.squad.examples import WHITE_SPACE, word_numbers

NO_SPAN = 1e6  # odds of no answer where there is no span


@dataclasses.dataclass(frozen=True)
class Window:
    """A row of the network, without padding; [N] each.

    Attributes:
        start_logits, end_logits: float32.
        starts, limits: int32, the first character of each piece of the
            context and the one behind its last; both 0 for other pieces.
        is_max_context: int32, 1: no window has more around this piece.
        ids: int32 pieces, for `tasks.squad.answers`.
    """

    start_logits: np.ndarray
    end_logits: np.ndarray
    starts: np.ndarray
    limits: np.ndarray
    is_max_context: np.ndarray
    ids: np.ndarray | None = None

    @classmethod
    def of_row(cls, row: dict, start_logits, end_logits) -> "Window":
        """A row of records with its logits.

        Args:
            row: of `squad_windows.PREDICTION_SCHEMA`.
            start_logits, end_logits: float32 [S], padding included.
        """
        ids = np.asarray(row[features.INPUT_IDS])
        return cls(
            start_logits[: len(ids)],
            end_logits[: len(ids)],
            row[features.PIECE_STARTS],
            row[features.PIECE_LIMITS],
            row[features.TOKEN_IS_MAX_CONTEXT],
            ids,
        )


class Span(NamedTuple):
    """Pieces from `start` to `end` of a window, with their logits."""

    window: int
    start: int
    end: int
    start_logit: float
    end_logit: float


class Entry(NamedTuple):
    """One of the n-best; no answer: text "" and characters 0 to 0.

    text: the answer.
    start, limit: its first character in the context, and the one behind its
        last.
    probability: softmax over the n-best.
    """

    text: str
    start: int
    limit: int
    start_logit: float
    end_logit: float
    probability: float = 0.0


@dataclasses.dataclass(frozen=True)
class Answers:
    """What is said to a question.

    Attributes:
        nbest: best first; never empty.
        best: the best that is an answer; None: there is no span.
        null_odds: score of no answer less that of `best`.
    """

    nbest: list[Entry]
    best: Entry | None
    null_odds: float

    def answer(self, threshold: float) -> Entry:
        """The best; that of text "" where the odds are above a threshold."""
        if self.best is None or self.null_odds > threshold:
            return next(x for x in self.nbest if not x.text)
        return self.best


def by_question(
    examples: list[squad.Example], rows: Iterable[tuple]
) -> Iterator[tuple[squad.Example, list[Window]]]:
    """Yields each question with its windows, of which it may have none.

    Args:
        examples: the questions.
        rows: what `Window.of_row` takes, in the order of the questions.
    """
    rows = iter(rows)
    waiting = next(rows, None)
    for index, example in enumerate(examples):
        own = []
        while waiting and waiting[0][features.EXAMPLE_INDEX][0] == index:
            own.append(Window.of_row(*waiting))
            waiting = next(rows, None)
        yield example, own


def candidates(
    windows: list[Window], n_best_size: int, max_answer_length: int
) -> list[Span]:
    """Pairs of the best starts and the best ends of each window.

    Args:
        windows: of one question.
        n_best_size: so many starts, and so many ends.
        max_answer_length: pieces of an answer at most.

    Returns:
        spans by descending sum of logits; of equals, the first window, then
        the best start, then the best end comes first.
    """
    found, scores = [], [np.zeros(0)]
    for number, window in enumerate(windows):
        start, end = np.meshgrid(
            _best(window.start_logits, n_best_size),
            _best(window.end_logits, n_best_size),
            indexing="ij",
        )
        inside = window.limits > 0
        allowed = inside[start] & inside[end]
        allowed &= window.is_max_context[start] == 1
        allowed &= (end >= start) & (end - start < max_answer_length)
        start, end = start[allowed], end[allowed]
        # As Python adds: in double precision.
        start_logits = window.start_logits[start].astype(np.float64)
        end_logits = window.end_logits[end].astype(np.float64)
        scores.append(start_logits + end_logits)
        found += map(
            Span,
            [number] * len(start),
            start.tolist(),
            end.tolist(),
            start_logits.tolist(),
            end_logits.tolist(),
        )
    order = np.argsort(-np.concatenate(scores), kind="stable")
    return [found[i] for i in order.tolist()]


def extract(
    windows: list[Window],
    text_of: Callable[[Span], str],
    n_best_size: int,
    max_answer_length: int,
    with_null: bool,
) -> Answers:
    """Finds the answers to a question.

    Args:
        windows: of the question, in order; none if its context is empty.
        text_of: gives a span's text.
        n_best_size: entries at most, and one more for no answer.
        max_answer_length: pieces of an answer at most.
        with_null: "" is one of the n-best.

    Returns:
        the answers; the probabilities of the n-best add up to 1.
    """
    null = _null(windows)
    nbest, seen, best = [], set(), None
    for span in candidates(windows, n_best_size, max_answer_length):
        if with_null and "" not in seen and _score(null) > _score(span):
            if len(nbest) < n_best_size:
                nbest.append(null)
            seen.add("")
        if len(nbest) >= n_best_size and best:
            break
        text = text_of(span)
        if not text or text in seen:
            continue
        seen.add(text)
        window = windows[span.window]
        entry = Entry(
            text,
            int(window.starts[span.start]),
            int(window.limits[span.end]),
            span.start_logit,
            span.end_logit,
        )
        best = best or entry
        if len(nbest) < n_best_size:
            nbest.append(entry)
    if null not in nbest and (with_null or not nbest):
        nbest.append(null)
    highest = max(map(_score, nbest))
    total = sum(math.exp(_score(x) - highest) for x in nbest)

    def rated(entry: Entry) -> Entry:
        share = math.exp(_score(entry) - highest)
        return entry._replace(probability=share / total)

    return Answers(
        [rated(entry) for entry in nbest],
        best and rated(best),
        _score(null) - _score(best) if best else NO_SPAN,
    )


def offsets_text(context: str, windows: list[Window]) -> Callable:
    """Gives the text of spans as it stands in the context.

    Args:
        context: of the question.
        windows: of the question.
    """

    def text_of(span: Span) -> str:
        window = windows[span.window]
        return context[window.starts[span.start] : window.limits[span.end]]

    return text_of


def _null(windows: list[Window]) -> Entry:
    """No answer: where `[CLS]` scores least, the first of equals."""
    entries = [
        Entry("", 0, 0, float(x.start_logits[0]), float(x.end_logits[0]))
        for x in windows
    ]
    return min(entries, key=_score, default=Entry("", 0, 0, 0.0, 0.0))


def _best(logits: np.ndarray, count: int) -> np.ndarray:
    """Places of the highest, best first, of equals the first."""
    return np.argsort(-logits, kind="stable")[:count]


def _score(entry) -> float:
    return entry.start_logit + entry.end_logit


PREDICTIONS = "predictions.json"
NBEST = "nbest_predictions.json"
NULL_ODDS = "null_odds.json"


class Writer:
    """Writes a JSON object, an entry at a time; whole or not at all.

        with Writer(path) as writer:
            writer.write("q1", value)

    Args:
        path: the file; one that is there is replaced.
    """

    def __init__(self, path: str):
        self._path, self._partial = path, f"{path}.partial"
        self._file = open(self._partial, "w", encoding="utf-8")  # noqa: SIM115
        self._separator = "{\n"

    def write(self, key: str, value) -> None:
        """Adds an entry, indented as `json.dumps` does it with 4."""
        entry = storage.to_json({key: value}, indent=4)[2:-2]
        self._file.write(self._separator + entry)
        self._separator = ",\n"

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        empty = self._separator == "{\n"
        self._file.write("{}\n" if empty else "\n}\n")
        self._file.close()
        if kind is None:
            storage.sync_and_hash(self._partial)
            storage.replace(self._partial, self._path)
        else:
            os.remove(self._partial)


def describe(nbest: list[Entry]) -> list[dict]:
    """The entries of a question in `nbest_predictions.json`."""
    return [
        {
            "text": entry.text,
            "probability": entry.probability,
            "start_logit": entry.start_logit,
            "end_logit": entry.end_logit,
        }
        for entry in nbest
    ]


def write(path: str, values: dict) -> str:
    """Writes a JSON object at once; returns the path."""
    storage.write_whole(path, storage.to_json(values, indent=4) + "\n")
    return path


_MEMO_SIZE = 1 << 18


class OriginalText:
    """Gives texts of spans.

    Args:
        tokens: of the vocabulary, in the order of their ids.
        do_lower_case, strip_accents: as the text was tokenized.
        report: told of every text that could not be aligned.
    """

    def __init__(
        self,
        tokens: list[str],
        do_lower_case: bool,
        strip_accents: bool | None,
        report: Callable[[str], None] | None = None,
    ):
        self._tokens, self._report = tokens, report
        self._tokenizer = BasicTokenizer(do_lower_case, strip_accents)
        self._memo: dict[tuple[str, str], str] = {}

    def text_of(
        self, context: str, windows: list[Window]
    ) -> Callable[[Span], str]:
        """As `spans.offsets_text`; windows have ids."""
        numbers = word_numbers(context)
        words = [x for x in re.split(f"[{WHITE_SPACE}]+", context) if x]

        def text_of(span: Span) -> str:
            window = windows[span.window]
            first = numbers[window.starts[span.start]]
            last = numbers[window.starts[span.end]]
            ids = window.ids[span.start : span.end + 1].tolist()
            pieces = " ".join(self._tokens[i] for i in ids)
            pieces = pieces.replace(" ##", "").replace("##", "")
            pieces = " ".join(pieces.split())
            return self._known(pieces, " ".join(words[first : last + 1]))

        return text_of

    def _known(self, pieces: str, words: str) -> str:
        found = self._memo.get((pieces, words))
        if found is None:
            if len(self._memo) >= _MEMO_SIZE:
                self._memo.clear()
            found = self.project(pieces, words)
            self._memo[pieces, words] = found
        return found

    def project(self, pieces: str, words: str) -> str:
        """The part of `words` that normalised pieces come from.

        Args:
            pieces: normalised text, put together from pieces.
            words: the text around it, as it was written.

        Returns:
            a part of `words`, or all of it.
        """
        normal = " ".join(self._tokenizer.tokenize(words))
        start = normal.find(pieces)
        if start < 0:
            return self._whole(words, f"does not hold {pieces!r}")
        in_words = [i for i, c in enumerate(words) if c != " "]
        in_normal = [i for i, c in enumerate(normal) if c != " "]
        if len(in_words) != len(in_normal):
            return self._whole(words, f"is not as long as {normal!r}")
        ranks = {place: rank for rank, place in enumerate(in_normal)}
        first = ranks.get(start)
        last = ranks.get(start + len(pieces) - 1)
        if first is None or last is None:
            return self._whole(words, f"has no place for {pieces!r}")
        return words[in_words[first] : in_words[last] + 1]

    def _whole(self, words: str, why: str) -> str:
        if self._report:
            self._report(f"{words!r} {why}: taken whole")
        return words
