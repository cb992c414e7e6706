"""Statistics of pre-training records, counted batch by batch."""

import collections

import numpy as np
from numpy.typing import NDArray

from bert.data import feature_names
from bert.data.pretraining import masking, rows
from bert.data.text.vocabulary import UNK

_NONE = -1  # no token


class Counter:
    """Counts tokens, predictions and problems of records.

    Args:
        size: int. V, which must be greater than every id.
        vocab: dict or None. Token -> id. None skips the checks that need it.

    Attributes:
        counts: dict. Counts named as in `rows.count_rows`, usable with
            `partitions.fractions` and `partitions.warnings`.
        targets: int64 [V]. Number of times that each token was masked.
        problems: dict. Problem -> (number of records with it; file, number
            and value of the first such record).
    """

    def __init__(self, size: int, vocab: dict[str, int] | None = None):
        self._vocabulary = masking.Vocabulary.of(vocab) if vocab else None
        self._unknown = vocab[UNK] if vocab else _NONE
        self.counts: dict[str, int] = collections.Counter()
        self.targets = np.zeros(size, np.int64)
        self.problems: dict[str, tuple] = {}

    def add(self, batch: dict[str, NDArray], path: str, first: int) -> None:
        """Adds a batch of records.

        Args:
            batch: dict. Features of `feature_names.pretraining_schema` or
                `packed_schema`.
            path: str. File of the records.
            first: int. Number of the first record in the file.
        """
        self._path, self._first = path, first
        ids, mask = (
            batch[feature_names.INPUT_IDS],
            batch[feature_names.INPUT_MASK],
        )
        self._check(batch)

        unknown = ids[mask > 0] == self._unknown
        self.counts["records"] += len(ids)
        self.counts["unknown_tokens"] += int(unknown.sum())
        mask_id = self._vocabulary.mask_id if self._vocabulary else _NONE
        self.counts.update(rows.count_rows(batch, mask_id))

        real = batch[feature_names.MASKED_LM_WEIGHTS] > 0
        self.targets += np.bincount(
            batch[feature_names.MASKED_LM_IDS][real],
            minlength=len(self.targets),
        )

    def _check(self, batch: dict[str, NDArray]) -> None:
        ids, mask = (
            batch[feature_names.INPUT_IDS],
            batch[feature_names.INPUT_MASK],
        )
        segments = batch[feature_names.SEGMENT_IDS]
        real = batch[feature_names.MASKED_LM_WEIGHTS] > 0
        positions = batch[feature_names.MASKED_LM_POSITIONS]
        labels = batch[feature_names.MASKED_LM_IDS]

        self._report(
            "input_mask is not ones followed by zeros",
            (mask[:, 1:] > mask[:, :-1]) | (mask[:, 1:] > 1),
            mask[:, 1:],
        )

        # Segment ids may decrease only after the end of an instance.
        inside = mask[:, 1:] > 0
        if feature_names.SEQUENCE_IDS in batch:
            sequence = batch[feature_names.SEQUENCE_IDS]
            inside &= sequence[:, 1:] == sequence[:, :-1]
        self._report(
            "segment_ids decrease inside a pair, or are not 0 on padding",
            (inside & (segments[:, 1:] < segments[:, :-1]))
            | ((mask[:, 1:] == 0) & (segments[:, 1:] > 0)),
            segments[:, 1:],
        )

        on_padding = np.take_along_axis(mask, positions, axis=1) == 0
        self._report(
            "a masked position is on padding", real & on_padding, positions
        )
        self._report(
            "a position is masked twice",
            real[:, 1:] & (positions[:, 1:] == positions[:, :-1]),
            positions[:, 1:],
        )

        if self._vocabulary:
            special = (self._vocabulary.cls_id, self._vocabulary.sep_id)
            self._report(
                "a masked position is on [CLS] or [SEP]",
                real & np.isin(labels, special),
                positions,
            )
            self._report(
                f"input_ids do not start with [CLS], {self._vocabulary.cls_id}",
                ids[:, :1] != self._vocabulary.cls_id,
                ids,
            )

    def _report(self, problem: str, bad: NDArray, values: NDArray):
        """Counts the records with a problem at any position."""
        is_bad = bad.any(axis=1)
        if not is_bad.any():
            return
        row = int(is_bad.argmax())
        value = values[row, bad[row].argmax()]

        # The place of the first problem is kept.
        where = (self._path, self._first + row, int(value))
        count, *where = self.problems.get(problem, (0, *where))
        self.problems[problem] = (count + int(is_bad.sum()), *where)
