"""What the rows of pre-training records hold, counted batch by batch."""

import dataclasses
import hashlib

import numpy as np

from data import features
from data.pretraining import masking
from data.text.vocabulary import UNK

_HASHED_ROWS = 1 << 22  # duplicates are looked for among so many


@dataclasses.dataclass
class Statistics:
    """Counts over rows, and the first row in which something is odd.

    Attributes:
        counts: names as in `buckets.count_instances`, so that its shares and
            warnings apply; `duplicates`, rows that stood before.
        targets: int64 [V], how often each piece was hidden.
        knows_masks: whether `[MASK]` was known, and what replaced pieces
            was counted.
        first_odd: what is odd -> (rows, file, record of it, value there).
    """

    counts: dict[str, int]
    targets: np.ndarray
    knows_masks: bool
    first_odd: dict[str, tuple[int, str, int, int]]


class Counter:
    """Counts rows.

    Args:
        size: V, above every id.
        vocab: token -> id; None if it is not known, which leaves out what
            needs it.
    """

    def __init__(self, size: int, vocab: dict[str, int] | None = None):
        self._known = masking.Vocabulary.of(vocab) if vocab else None
        self._unknown = vocab[UNK] if vocab else None
        names = (
            "records instances random_next row_tokens unknown_tokens "
            "predictions predictions_masked predictions_random duplicates"
        ).split()
        self.found = Statistics(
            dict.fromkeys(names, 0),
            np.zeros(size, np.int64),
            vocab is not None,
            {},
        )
        self._hashes: list[np.ndarray] = []

    def add(self, batch: dict[str, np.ndarray], path: str, first: int) -> None:
        """Adds rows.

        Args:
            batch: as `features.pretraining_schema` or `packed_schema` says.
            path: the file they are from.
            first: number of the first of them in it.
        """
        self._path, self._first = path, first
        ids, mask = batch[features.INPUT_IDS], batch[features.INPUT_MASK]
        counts = self.found.counts
        self._find_odd_rows(batch)
        self._hash(batch)
        labels = batch[features.NEXT_SENTENCE_LABELS]
        real = batch.get(
            features.NEXT_SENTENCE_WEIGHTS, np.ones(labels.shape)
        ).astype(bool)
        counts["instances"] += int(real.sum())
        counts["random_next"] += int(labels[real].sum())
        counts["records"] += len(ids)
        pieces = ids[mask > 0]
        counts["row_tokens"] += len(pieces)
        self._count_masks(batch)
        if self._known:
            counts["unknown_tokens"] += int((pieces == self._unknown).sum())

    def finish(self) -> Statistics:
        """What was found in all rows."""
        if self._hashes:
            hashes = np.concatenate(self._hashes)
            distinct = len(np.unique(hashes))
            self.found.counts["duplicates"] = len(hashes) - distinct
        return self.found

    def _count_masks(self, batch: dict[str, np.ndarray]) -> None:
        real = batch[features.MASKED_LM_WEIGHTS] > 0
        places, was = _hidden(batch)
        now, was = places[real], was[real]
        counts = self.found.counts
        counts["predictions"] += len(was)
        self.found.targets += np.bincount(
            was, minlength=len(self.found.targets)
        )
        if self._known:
            hidden = now == self._known.mask_id
            counts["predictions_masked"] += int(hidden.sum())
            counts["predictions_random"] += int((~hidden & (now != was)).sum())

    def _find_odd_rows(self, batch: dict[str, np.ndarray]) -> None:
        ids, mask = batch[features.INPUT_IDS], batch[features.INPUT_MASK]
        segments = batch[features.SEGMENT_IDS]
        real = batch[features.MASKED_LM_WEIGHTS] > 0
        places = batch[features.MASKED_LM_POSITIONS]
        _, was = _hidden(batch)
        self._note(
            "input_mask has a hole or is not 0 and 1",
            (mask[:, 1:] > mask[:, :-1]) | (mask[:, 1:] > 1),
            mask[:, 1:],
        )
        # A segment falls back to 0 only behind its row, or its instance.
        inside = mask[:, 1:] > 0
        if features.SEQUENCE_IDS in batch:
            sequence = batch[features.SEQUENCE_IDS]
            inside &= sequence[:, 1:] == sequence[:, :-1]
        self._note(
            "segment_ids fall inside a pair, or stand on padding",
            (inside & (segments[:, 1:] < segments[:, :-1]))
            | ((mask[:, 1:] == 0) & (segments[:, 1:] > 0)),
            segments[:, 1:],
        )
        on_padding = np.take_along_axis(mask, places, axis=1) == 0
        self._note("a masked position is on padding", real & on_padding, places)
        self._note(
            "a place is masked twice",
            (real[:, 1:] & (places[:, 1:] == places[:, :-1])),
            places[:, 1:],
        )
        if self._known:
            special = (self._known.cls_id, self._known.sep_id)
            self._note(
                "a masked position is on [CLS] or [SEP]",
                real & np.isin(was, special),
                places,
            )
            self._note(
                f"input_ids does not start with [CLS], {self._known.cls_id}",
                ids[:, :1] != self._known.cls_id,
                ids,
            )

    def _note(self, what: str, odd: np.ndarray, values: np.ndarray) -> None:
        """Remembers rows of which any place is odd."""
        rows = odd.any(axis=1)
        if not rows.any():
            return
        row = int(rows.argmax())
        value = values[row, odd[row].argmax()]
        place = (self._path, self._first + row, int(value))
        many, *place = self.found.first_odd.get(what, (0, *place))
        self.found.first_odd[what] = (many + int(rows.sum()), *place)

    def _hash(self, batch: dict[str, np.ndarray]) -> None:
        if self.found.counts["records"] >= _HASHED_ROWS:
            return
        rows = np.hstack(
            [
                batch[name]
                for name in (
                    features.INPUT_IDS,
                    features.MASKED_LM_POSITIONS,
                    features.MASKED_LM_IDS,
                )
            ]
        )
        digests = b"".join(
            hashlib.blake2b(row.tobytes(), digest_size=8).digest()
            for row in rows
        )
        self._hashes.append(np.frombuffer(digests, np.uint64))


def _hidden(batch: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """What stands at the masked places, and what stood there: int [N, P]."""
    places = batch[features.MASKED_LM_POSITIONS]
    now = np.take_along_axis(batch[features.INPUT_IDS], places, axis=1)
    return now, batch[features.MASKED_LM_IDS]
