"""Input sequences: `[CLS]` and `[SEP]`, truncation, windows.

ids       [CLS]  a  a  a  [SEP]  b  b  [SEP]  0  0
mask         1   1  1  1     1   1  1     1   0  0
segments     0   0  0  0     0   1  1     1   0  0
"""

import dataclasses
from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np

from bert.common.errors import UserError
from bert.data import feature_names

HEAD, TAIL, HEAD_TAIL = "head", "tail", "head_tail"
TRUNCATIONS = (HEAD, TAIL, HEAD_TAIL)
MEAN, MAX = "mean", "max"

DetailsT = TypeVar("DetailsT")  # of the details that a task keeps
# Result of `Task.combine` for an example; its type depends on the task.
TaskResult: TypeAlias = Any
TokenSequence = tuple[list[int], list[int]]  # ids and segment ids


class Encoded(NamedTuple, Generic[DetailsT]):
    """The sequences of an example, returned by the `encode` of a task.

    Attributes:
        sequences: ids and segment ids of each sequence: one, windows or
            choices.
        num_tokens: number of tokens before truncation, special tokens
            included; 0 if it is not counted.
        is_truncated: whether tokens were dropped.
        details: values for the task's `decode` besides the outputs, of the
            task's own type `DetailsT`. Default: None, no values.
        positions: for a head that reads one token of each sequence, the index
            of the token. Default: None, `[CLS]`.
    """

    sequences: list[TokenSequence]
    num_tokens: int = 0
    is_truncated: bool = False
    details: DetailsT = None  # type: ignore[assignment]  # no details
    positions: list[int] | None = None


class TokenWindow(NamedTuple):
    """Window of a text: the `length` tokens from index `start`."""

    start: int
    length: int


@dataclasses.dataclass(frozen=True)
class LongTexts:
    """Handling of texts that are longer than a sequence.

        tokens of the text    0 1 2 3 4 5 6 7 8 9
        truncated to 6        0 1 2 3 4 5
        windows of 6          0 1 2 3 4 5
                                      4 5 6 7 8 9

    Attributes:
        truncate: str. Part of the text to keep: one of `TRUNCATIONS`, see
            `kept_at_start`. Default: HEAD.
        pool: str. MEAN or MAX pools the logits of windows. "" truncates the
            text instead. Default: "".
        stride: int. Number of tokens between the starts of two windows.
    """

    truncate: str = HEAD
    pool: str = ""
    stride: int = 0

    @classmethod
    def of_task(cls, task: dict) -> Self:
        """Reads the long-text handling from the content of a `task.json`."""
        return cls(task.get("truncate", HEAD), **task.get("windows", {}))

    def described(self) -> dict:
        """Returns the entries of `task.json`; {} for the default."""
        task: dict = {}
        if self.truncate != HEAD:
            task["truncate"] = self.truncate
        if self.pool:
            task["windows"] = {"pool": self.pool, "stride": self.stride}
        return task

    def without_windows(self) -> Self:
        """Returns the same truncation without windows, as in training."""
        return dataclasses.replace(self, pool="", stride=0)

    def check(self, has_pairs: bool) -> None:
        """Rejects windows of pairs of texts.

        Raises:
            UserError: `has_pairs` is true, and windows are used.
        """
        if has_pairs and self.pool:
            raise UserError(
                "pairs of texts, and long texts in windows",
                expected="one text in each example",
                fix="truncate the texts, as without --long_texts=windows",
            )

    def rows(
        self, a: list, b: list, max_seq_length: int, cls_id, sep_id
    ) -> list[TokenSequence]:
        """Makes the sequences of one or two texts: one, or one per window.

        Args:
            a: list of int. Ids of the first text.
            b: list of int. Ids of the second text; may be empty.
            max_seq_length: int. S, the maximum length of a sequence.
            cls_id: int. Id of `[CLS]`.
            sep_id: int. Id of `[SEP]`.

        Returns:
            list of TokenSequence. At least one.

        Raises:
            UserError: A pair of texts is given, and windows are used.
        """
        self.check(bool(b))

        # Space without [CLS], and without [SEP] after each text.
        space = max_seq_length - (3 if b else 2)
        if not self.pool:
            a, b = truncate_pair(a, b, space, self.truncate)
            return [join_pair(a, b, cls_id, sep_id)]

        windows = cut(len(a), space, self.stride) or [TokenWindow(0, 0)]
        return [
            join_pair(a[start : start + length], [], cls_id, sep_id)
            for start, length in windows
        ]

    def pooled(self, logits: np.ndarray, counts: list[int]) -> np.ndarray:
        """Pools the logits of sequences to logits of texts.

        Args:
            logits: float32 [W, C]. Logits of the sequences.
            counts: list of N int. Number of sequences of each text, at least 1.

        Returns:
            float32 [N, C]. Logits of the texts.
        """
        if not self.pool or not counts:
            return logits
        starts = np.cumsum([0, *counts[:-1]])
        if self.pool == MAX:
            return np.maximum.reduceat(logits, starts)
        sizes = np.array(counts, np.float32)[:, np.newaxis]
        return np.add.reduceat(logits, starts) / sizes


FIRST_TOKENS = LongTexts()  # truncation as in the original


def rows_of(records: Iterable[dict]) -> list[TokenSequence]:
    """Returns the ids and segment ids of windows or other records.

    Args:
        records: iterable of dict. Feature name -> values of a sequence.
    """
    return [
        (x[feature_names.INPUT_IDS], x[feature_names.SEGMENT_IDS])
        for x in records
    ]


def join_pair(
    a: list[int], b: list[int], cls_id: int, sep_id: int
) -> TokenSequence:
    """Makes `[CLS] a [SEP] b [SEP]`, or `[CLS] a [SEP]` if `b` is empty.

    Args:
        a: list of int. Ids of the first segment.
        b: list of int. Ids of the second segment; may be empty.
        cls_id: int. Id of `[CLS]`.
        sep_id: int. Id of `[SEP]`.

    Returns:
        (ids, segment ids). Two lists of the same length.
    """
    ids = [cls_id, *a, sep_id]
    segments = [0] * len(ids)
    if b:
        ids += [*b, sep_id]
        segments += [1] * (len(b) + 1)
    return ids, segments


def truncate_pair(
    a: list[int], b: list[int], max_tokens: int, truncate: str = HEAD
) -> tuple[list[int], list[int]]:
    """Truncates the longer segment until both fit, at its end by default.

    Equivalent to `_truncate_seq_pair` of the original's run_classifier.py: if
    both segments have the same length, `b` is truncated.

    Args:
        a: list of int. Ids of the first segment.
        b: list of int. Ids of the second segment.
        max_tokens: int. Maximum length of both together.
        truncate: str. Part of each segment to keep, see `kept_at_start`.
            Default: HEAD.

    Returns:
        (list of int, list of int). The truncated segments.
    """
    # Each segment gets half of the space, and space that the other leaves.
    half = max_tokens // 2
    return (
        _truncate(a, max(max_tokens - len(b), max_tokens - half), truncate),
        _truncate(b, max(max_tokens - len(a), half), truncate),
    )


def cut(count: int, size: int, stride: int) -> list[TokenWindow]:
    """Divides a text into windows, as in the original for SQuAD.

        count = 10, size = 6, stride = 3
        0 1 2 3 4 5
              3 4 5 6 7 8
                    6 7 8 9

    Args:
        count: int. Number of tokens of the text.
        size: int. Maximum number of tokens of a window.
        stride: int. Number of tokens between the starts of two windows;
            limited to `size`.

    Returns:
        list of TokenWindow. Windows that cover all tokens; [] without tokens.
    """
    assert size > 0 and stride > 0, (size, stride)
    windows = []
    for start in range(0, count, min(size, stride)):
        windows.append(TokenWindow(start, min(size, count - start)))
        if start + size >= count:
            break
    return windows


def kept_at_start(count, truncate: str):
    """Returns the number of tokens kept from the start of a segment.

    The other kept tokens are from its end. HEAD_TAIL keeps 128 and 382 of 510
    tokens, as in Sun et al. 2019.

    Args:
        count: int or tensor. Number of tokens to keep.
        truncate: str. One of `TRUNCATIONS`.
    """
    return {HEAD: count, TAIL: 0 * count, HEAD_TAIL: (count + 2) // 4}[truncate]


def _truncate(ids: list[int], count: int, truncate: str) -> list[int]:
    """Keeps `count` ids from the start, the end or both."""
    if len(ids) <= count:
        return ids
    first = kept_at_start(count, truncate)
    return ids[:first] + ids[len(ids) - count + first :]
