"""Converts logits to answers: n-best spans and the odds of no answer.

    start_logits, end_logits of each window
      -> pairs of the best starts and ends     candidates
      -> one entry for each text               n-best
      -> probabilities, odds of no answer      Answers

As in google-research/bert `run_squad.py`, with two exceptions. Padding is never
among the best starts and ends. A question without a valid span has an empty
answer, where the original crashes or answers "empty".
"""

import dataclasses
import functools
import math
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bert.common import atomic
from bert.common.formats import json_files
from bert.data import feature_names
from bert.data.text.tokenization import BasicTokenizer
from bert.tasks.squad.examples import WHITE_SPACE, word_numbers

NO_SPAN = 1e6  # odds of no answer without a valid span


@dataclasses.dataclass(frozen=True)
class WindowLogits:
    """A window and its logits without padding; arrays of shape [N].

    Attributes:
        start_logits, end_logits: float32.
        starts, limits: int32, the first character of each token of the
            context and the character after its last; 0 for other tokens.
        is_max_context: int32, 1 if this window has the most context for the
            token.
        ids: int32, token ids; needed by `OriginalText`.
    """

    start_logits: NDArray
    end_logits: NDArray
    starts: NDArray
    limits: NDArray
    is_max_context: NDArray
    ids: NDArray

    @classmethod
    def of_record(
        cls, record: dict, start_logits, end_logits
    ) -> "WindowLogits":
        """Combines a record with its logits.

        Args:
            record: dict, see `WindowMaker.prediction_windows`.
            start_logits, end_logits: float32 [S], with padding.
        """
        ids = np.asarray(record[feature_names.INPUT_IDS])
        return cls(
            start_logits[: len(ids)],
            end_logits[: len(ids)],
            record[feature_names.TOKEN_STARTS],
            record[feature_names.TOKEN_LIMITS],
            record[feature_names.TOKEN_IS_MAX_CONTEXT],
            ids,
        )


class Candidate(NamedTuple):
    """Tokens of a window from `start` to `end`, inclusive, with logits."""

    window: int
    start: int
    end: int
    start_logit: float
    end_logit: float


class Entry(NamedTuple):
    """An entry of an n-best list.

    text: the answer; "" for no answer, with characters 0 to 0.
    start, limit: its first character in the context, and the character after
        its last.
    probability: softmax over the n-best list.
    """

    text: str
    start: int
    limit: int
    start_logit: float
    end_logit: float
    probability: float = 0.0


@dataclasses.dataclass(frozen=True)
class Answers:
    """The answers to a question.

    Attributes:
        nbest: the n-best list, best first; never empty.
        best: the best non-empty answer; None without a valid span.
        null_odds: score of no answer minus the score of `best`.
    """

    nbest: list[Entry]
    best: Entry | None
    null_odds: float


def candidates(
    windows: list[WindowLogits], n_best_size: int, max_answer_length: int
) -> list[Candidate]:
    """Pairs the best starts with the best ends of each window.

    Args:
        windows: the windows of one question.
        n_best_size: number of starts and number of ends.
        max_answer_length: maximum number of tokens of an answer.

    Returns:
        candidates by descending sum of logits; ties are ordered by window,
        then by best start, then by best end.
    """
    spans, scores = [], [np.zeros(0)]
    for number, window in enumerate(windows):
        start, end = np.meshgrid(
            _best(window.start_logits, n_best_size),
            _best(window.end_logits, n_best_size),
            indexing="ij",
        )

        # Only tokens of the context have characters.
        inside = window.limits > 0
        allowed = inside[start] & inside[end]
        allowed &= window.is_max_context[start] == 1
        allowed &= (end >= start) & (end - start < max_answer_length)
        start, end = start[allowed], end[allowed]

        # In double precision, as in the original.
        start_logits = window.start_logits[start].astype(np.float64)
        end_logits = window.end_logits[end].astype(np.float64)
        scores.append(start_logits + end_logits)
        spans += map(
            Candidate,
            [number] * len(start),
            start.tolist(),
            end.tolist(),
            start_logits.tolist(),
            end_logits.tolist(),
        )

    order = np.argsort(-np.concatenate(scores), kind="stable")
    return [spans[i] for i in order.tolist()]


def extract(
    windows: list[WindowLogits],
    text_of: Callable[[Candidate], str],
    n_best_size: int,
    max_answer_length: int,
    with_null: bool,
) -> Answers:
    """Finds the answers to a question.

    Args:
        windows: the windows of the question, in order; may be empty.
        text_of: function from a candidate to its text.
        n_best_size: int. Maximum number of entries, without the empty answer.
        max_answer_length: int. Maximum number of tokens of an answer.
        with_null: bool. Whether the n-best list includes the empty answer.

    Returns:
        the answers; the probabilities of the n-best list add up to 1.
    """
    null = _null(windows)
    nbest, seen, best = [], set(), None
    for span in candidates(windows, n_best_size, max_answer_length):
        # The empty answer is ranked by its score.
        if with_null and "" not in seen and _score(null) > _score(span):
            if len(nbest) < n_best_size:
                nbest.append(null)
            seen.add("")

        # The odds need a non-empty answer, even if it is not in the list.
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

    # Always in the list, which may then exceed n_best_size by one.
    if null not in nbest and (with_null or not nbest):
        nbest.append(null)

    # Softmax, shifted against overflow.
    highest = max(map(_score, nbest))
    total = sum(math.exp(_score(x) - highest) for x in nbest)

    def rated(entry: Entry) -> Entry:
        power = math.exp(_score(entry) - highest)
        return entry._replace(probability=power / total)

    return Answers(
        [rated(entry) for entry in nbest],
        best and rated(best),
        _score(null) - _score(best) if best else NO_SPAN,
    )


def offsets_text(context: str, windows: list[WindowLogits]) -> Callable:
    """Makes a function from candidates to their text in the context.

    Args:
        context: the context of the question.
        windows: the windows of the question.
    """

    def text_of(span: Candidate) -> str:
        window = windows[span.window]
        return context[window.starts[span.start] : window.limits[span.end]]

    return text_of


def _null(windows: list[WindowLogits]) -> Entry:
    """The empty answer, scored by the lowest `[CLS]` score of a window."""
    entries = [
        Entry("", 0, 0, float(x.start_logits[0]), float(x.end_logits[0]))
        for x in windows
    ]
    return min(entries, key=_score, default=Entry("", 0, 0, 0.0, 0.0))


def _best(logits: NDArray, count: int) -> NDArray:
    """Positions of the highest logits, best first, stable on ties."""
    return np.argsort(-logits, kind="stable")[:count]


def _score(entry) -> float:
    return entry.start_logit + entry.end_logit


PREDICTIONS = "predictions.json"
NBEST = "nbest_predictions.json"
NULL_ODDS = "null_odds.json"


def describe(nbest: list[Entry]) -> list[dict]:
    """Entries of a question for `nbest_predictions.json`."""
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
    atomic.write_whole(path, json_files.to_json(values, indent=4) + "\n")
    return path


_MEMO_SIZE = 1 << 18


class OriginalText:
    """Finds texts of candidates with the original's alignment of tokens.

    Args:
        tokens: list of str. The vocabulary, in the order of the ids.
        basic: the tokenizer that splits text into words.
        report: function or None. Called with a message for each text that
            cannot be aligned.
    """

    def __init__(
        self,
        tokens: list[str],
        basic: BasicTokenizer,
        report: Callable[[str], None] | None = None,
    ):
        self._tokens, self._report = tokens, report
        self._tokenizer = basic
        self._text_in = functools.lru_cache(_MEMO_SIZE)(self.get_final_text)

    def text_of(
        self, context: str, windows: list[WindowLogits]
    ) -> Callable[[Candidate], str]:
        """Like `offsets_text`; the windows must have ids."""
        numbers = word_numbers(context)
        words = [x for x in re.split(f"[{WHITE_SPACE}]+", context) if x]

        def text_of(span: Candidate) -> str:
            window = windows[span.window]
            first = numbers[window.starts[span.start]]
            last = numbers[window.starts[span.end]]
            ids = window.ids[span.start : span.end + 1].tolist()

            # As in the original: join word pieces, then normalize blanks.
            text = " ".join(self._tokens[i] for i in ids)
            text = text.replace(" ##", "").replace("##", "")
            text = " ".join(text.split())
            return self._text_in(text, " ".join(words[first : last + 1]))

        return text_of

    def get_final_text(self, text: str, words: str) -> str:
        """Finds the part of `words` from which normalized text was made.

        Args:
            text: str. Normalized text, joined from tokens.
            words: str. The original words that contain it.

        Returns:
            a part of `words`, or all of it if the alignment fails.
        """
        normal = " ".join(self._tokenizer.tokenize(words))
        start = normal.find(text)
        if start < 0:
            return self._whole(words, f"does not contain {text!r}")

        # Pair all characters but blanks: both texts need the same number.
        in_words = [i for i, c in enumerate(words) if c != " "]
        in_normal = [i for i, c in enumerate(normal) if c != " "]
        if len(in_words) != len(in_normal):
            return self._whole(words, f"differs in length from {normal!r}")

        # Equal ranks are the same character.
        ranks = {position: rank for rank, position in enumerate(in_normal)}
        first = ranks.get(start)
        last = ranks.get(start + len(text) - 1)
        if first is None or last is None:
            return self._whole(words, f"cannot be aligned with {text!r}")
        return words[in_words[first] : in_words[last] + 1]

    def _whole(self, words: str, why: str) -> str:
        if self._report:
            self._report(f"{words!r} {why}: using all of it")
        return words
