"""Input sequences: `[CLS]` and `[SEP]`, truncation, padding.

ids       [CLS]  a  a  a  [SEP]  b  b  [SEP]  0  0
mask         1   1  1  1     1   1  1     1   0  0
segments     0   0  0  0     0   1  1     1   0  0
"""

import numpy as np


def join_pair(
    a: list[int], b: list[int], cls_id: int, sep_id: int
) -> tuple[list[int], list[int]]:
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
    a: list[int], b: list[int], max_tokens: int
) -> tuple[list[int], list[int]]:
    """Truncates the longer segment at its end until both fit.

    As `_truncate_seq_pair` of the original's run_classifier.py: of two
    segments of the same length, `b` is truncated.

    Args:
        a: ids of the first segment.
        b: ids of the second segment.
        max_tokens: maximum length of both together.

    Returns:
        the two segments, truncated.
    """
    # Each has its half, and what the other one leaves of its own.
    half = max_tokens // 2
    return (
        a[: max(max_tokens - len(b), max_tokens - half)],
        b[: max(max_tokens - len(a), half)],
    )


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
