"""Input sequences: `[CLS]` and `[SEP]`, truncation, windows, padding.

ids       [CLS]  a  a  a  [SEP]  b  b  [SEP]  0  0
mask         1   1  1  1     1   1  1     1   0  0
segments     0   0  0  0     0   1  1     1   0  0
"""

import dataclasses
from typing import Any, NamedTuple, Self

import numpy as np

from bert.common.errors import UserError

HEAD, TAIL, HEAD_TAIL = "head", "tail", "head_tail"
TRUNCATIONS = (HEAD, TAIL, HEAD_TAIL)
MEAN, MAX = "mean", "max"

Row = tuple[list[int], list[int]]  # ids and segment ids


class Encoded(NamedTuple):
    """The sequences of an example, made by the `encode` of a task.

    Attributes:
        rows: ids and segment ids of each sequence: one, windows or choices.
        num_tokens: number of tokens before truncation, special tokens
            included; 0 if it is not counted.
        is_truncated: whether tokens were dropped.
        details: values for the task's `decode` besides the outputs.
    """

    rows: list[Row]
    num_tokens: int = 0
    is_truncated: bool = False
    details: Any = None


class TokenWindow(NamedTuple):
    """The `length` tokens of a text from token `start` on."""

    start: int
    length: int


@dataclasses.dataclass(frozen=True)
class LongTexts:
    """What is read of a text that is longer than a sequence.

        tokens of the text    0 1 2 3 4 5 6 7 8 9
        truncated to 6        0 1 2 3 4 5
        windows of 6          0 1 2 3 4 5
                                      4 5 6 7 8 9

    Attributes:
        truncate: what is kept of it, see `kept_at_start`.
        pool: MEAN or MAX, over the logits of its windows; "": no windows, it
            is truncated.
        stride: tokens between the starts of two windows.
    """

    truncate: str = HEAD
    pool: str = ""
    stride: int = 0

    @classmethod
    def of_task(cls, task: dict) -> Self:
        """The one of a `task.json`."""
        return cls(task.get("truncate", HEAD), **task.get("windows", {}))

    def described(self) -> dict:
        """Its entries in a `task.json`; {} if it is as in the original."""
        task: dict = {}
        if self.truncate != HEAD:
            task["truncate"] = self.truncate
        if self.pool:
            task["windows"] = {"pool": self.pool, "stride": self.stride}
        return task

    def without_windows(self) -> Self:
        """The same truncation, as in training."""
        return dataclasses.replace(self, pool="", stride=0)

    def check(self, has_pairs: bool) -> None:
        """Rejects windows of pairs of texts.

        Raises:
            UserError: there are both.
        """
        if has_pairs and self.pool:
            raise UserError(
                "pairs of texts, and long texts in windows",
                expected="one text in each example",
                fix="truncate the texts, as without --long_texts=windows",
            )

    def rows(
        self, a: list, b: list, max_seq_length: int, cls_id, sep_id
    ) -> list[Row]:
        """The sequences of one or two texts: one, or those of the windows.

        Args:
            a: ids of the first text.
            b: ids of the second text; may be empty.
            max_seq_length: S, the longest sequence.
            cls_id: id of `[CLS]`.
            sep_id: id of `[SEP]`.

        Returns:
            ids and segment ids of each sequence, at least one.

        Raises:
            UserError: there are windows, and two texts.
        """
        self.check(bool(b))

        # Room for [CLS], and for [SEP] after each text.
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
        """Pools the logits of sequences to those of their texts.

        Args:
            logits: float32 [W, C].
            counts: number of sequences of each text, [N], from 1.

        Returns:
            float32 [N, C].
        """
        if not self.pool or not counts:
            return logits
        starts = np.cumsum([0, *counts[:-1]])
        if self.pool == MAX:
            return np.maximum.reduceat(logits, starts)
        sizes = np.array(counts, np.float32)[:, np.newaxis]
        return np.add.reduceat(logits, starts) / sizes


FIRST_TOKENS = LongTexts()  # as in the original


def join_pair(a: list[int], b: list[int], cls_id: int, sep_id: int) -> Row:
    """Makes `[CLS] a [SEP] b [SEP]`, or `[CLS] a [SEP]` if `b` is empty.

    Args:
        a: ids of the first segment.
        b: ids of the second segment; may be empty.
        cls_id: id of `[CLS]`.
        sep_id: id of `[SEP]`.

    Returns:
        (ids, segment ids), of the same length.
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

    As `_truncate_seq_pair` of the original's run_classifier.py: of two
    segments of the same length, `b` is truncated.

    Args:
        a: ids of the first segment.
        b: ids of the second segment.
        max_tokens: maximum length of both together.
        truncate: what is kept of each segment, see `kept_at_start`.

    Returns:
        the two segments, truncated.
    """
    # Each has its half, and what the other one leaves of its own.
    half = max_tokens // 2
    return (
        _truncate(a, max(max_tokens - len(b), max_tokens - half), truncate),
        _truncate(b, max(max_tokens - len(a), half), truncate),
    )


def cut(count: int, size: int, stride: int) -> list[TokenWindow]:
    """Divides a text into windows, as the original does for SQuAD.

        count = 10, size = 6, stride = 3
        0 1 2 3 4 5
              3 4 5 6 7 8
                    6 7 8 9

    Args:
        count: number of tokens of the text.
        size: maximum number of tokens of a window.
        stride: tokens between the starts of two windows; at most `size` is
            used.

    Returns:
        windows that cover all tokens; [] if there are no tokens.
    """
    assert size > 0 and stride > 0, (size, stride)
    windows = []
    for start in range(0, count, min(size, stride)):
        windows.append(TokenWindow(start, min(size, count - start)))
        if start + size >= count:
            break
    return windows


def kept_at_start(count, truncate: str):
    """How many tokens of a truncated segment are those of its start.

    The others are those of its end. As Sun et al. 2019, HEAD_TAIL keeps 128
    and 382 of 510.

    Args:
        count: number of tokens that are kept, an integer or a tensor.
        truncate: one of `TRUNCATIONS`.
    """
    return {HEAD: count, TAIL: 0 * count, HEAD_TAIL: (count + 2) // 4}[truncate]


def _truncate(ids: list[int], count: int, truncate: str) -> list[int]:
    """The first and the last ids, `count` of them."""
    if len(ids) <= count:
        return ids
    first = kept_at_start(count, truncate)
    return ids[:first] + ids[len(ids) - count + first :]


def pad_rows(rows: list[list], length: int, dtype: type) -> np.ndarray:
    """Pads lists with zeros to an array.

    Args:
        rows: N lists of at most `length` numbers.
        length: length of the result's rows.
        dtype: numpy dtype of the result.

    Returns:
        `dtype [N, length]`.
    """
    padded = np.zeros((len(rows), length), dtype)
    for row, values in zip(padded, rows, strict=True):
        row[: len(values)] = values
    return padded
