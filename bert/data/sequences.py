"""Input sequences: `[CLS]` and `[SEP]`, truncation, windows, padding.

ids       [CLS]  a  a  a  [SEP]  b  b  [SEP]  0  0
mask         1   1  1  1     1   1  1     1   0  0
segments     0   0  0  0     0   1  1     1   0  0
"""

from typing import NamedTuple

import numpy as np

HEAD, TAIL, HEAD_TAIL = "head", "tail", "head_tail"
TRUNCATIONS = (HEAD, TAIL, HEAD_TAIL)

Row = tuple[list[int], list[int]]  # ids and segment ids


class TokenWindow(NamedTuple):
    """The `length` tokens of a text from token `start` on."""

    start: int
    length: int


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
