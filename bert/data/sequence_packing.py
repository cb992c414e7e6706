"""Packs short sequences into shared rows, to reduce padding.

    lengths 3 7 2 6 5 4    rows  7 2 | 6 3 | 5 4

Attention does not cross sequences, so the outputs are the same.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bert.data import feature_names
from bert.data.sequences import TokenSequence

_WIDTH = 96  # minimum tokens of a row of several sequences; measured on 2 cores
_MULTIPLE = 4  # engines prepare each new width; fewer widths save a tenth
MAX_TOKENS = 4096  # maximum tokens of a batch, to limit memory


class PackedBatch(NamedTuple):
    """Sequences in shared rows.

    Attributes:
        inputs: dict. Feature name -> int32 [R, W], the inputs of a packed
            encoder. `next_sentence_positions` is [R, K].
        rows: list of N int. Row of each sequence.
        slots: list of N int. Index of each sequence in its row.
        starts: list of N int. First column of each sequence.
        lengths: list of N int. Number of tokens of each sequence.
    """

    inputs: dict[str, NDArray]
    rows: list[int]
    slots: list[int]
    starts: list[int]
    lengths: list[int]


def pack(
    sequences: list[TokenSequence], read: Sequence[int] | None = None
) -> PackedBatch:
    """Distributes sequences over rows, longest first, back and forth.

    Args:
        sequences: list of TokenSequence. N sequences, N > 0.
        read: sequence of N int, or None. Index of the token of each sequence
            that a head reads. Default: None, `[CLS]`.
    """
    lengths = [len(ids) for ids, _ in sequences]
    count = -(-sum(lengths) // max(_WIDTH, *lengths))

    # Rows are filled back and forth: 0 1 2, 2 1 0, 0 1 2.
    rows, slots, starts = ([0] * len(lengths) for _ in range(3))
    ends = [0] * count
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    for place, i in enumerate(order):
        slots[i], row = divmod(place, count)
        rows[i] = row if slots[i] % 2 == 0 else count - 1 - row
        starts[i] = ends[rows[i]]
        ends[rows[i]] += lengths[i]
    width = -(-max(ends) // _MULTIPLE) * _MULTIPLE

    # For one sequence a loop takes a quarter of the time of index arrays, for
    # many of a few tokens twice the time.
    ids, mask, segments, positions, sequence_ids = np.zeros(
        (5, count, width), np.int32
    )
    numbers = np.arange(max(lengths), dtype=np.int32)
    for i, (token_ids, segment_ids) in enumerate(sequences):
        cells = rows[i], slice(starts[i], starts[i] + lengths[i])
        ids[cells] = token_ids
        mask[cells] = 1
        segments[cells] = segment_ids
        positions[cells] = numbers[: lengths[i]]
        sequence_ids[cells] = slots[i] + 1

    # A row with fewer sequences has unused slots at its end.
    read_positions = np.zeros((count, max(slots) + 1), np.int32)
    read_positions[rows, slots] = np.add(starts, 0 if read is None else read)
    inputs = {
        feature_names.INPUT_IDS: ids,
        feature_names.INPUT_MASK: mask,
        feature_names.SEGMENT_IDS: segments,
        feature_names.POSITION_IDS: positions,
        feature_names.SEQUENCE_IDS: sequence_ids,
        feature_names.NEXT_SENTENCE_POSITIONS: read_positions,
    }
    return PackedBatch(inputs, rows, slots, starts, lengths)


def map_packed(
    run: Callable[[dict[str, np.ndarray]], np.ndarray],
    sequences: list[TokenSequence],
    is_pooled: bool,
    max_tokens: int = MAX_TOKENS,
    read: Sequence[int] | None = None,
) -> list[np.ndarray]:
    """Computes the outputs of sequences in shared rows.

    Args:
        run: callable. Maps the inputs of a packed encoder to float32
            [R, K, ...] if `is_pooled`, else [R, W, ...].
        sequences: list of TokenSequence. N sequences.
        is_pooled: bool. Whether `run` returns one output per sequence instead
            of one per token.
        max_tokens: int. Maximum number of tokens of a batch. Default:
            `MAX_TOKENS`.
        read: see `pack`.

    Returns:
        list of N arrays. Outputs in the order of the sequences: float32 [...]
        if `is_pooled`, else float32 [S, ...] without padding.
    """
    results: list = [None] * len(sequences)
    for chosen in _groups([len(ids) for ids, _ in sequences], max_tokens):
        of_chosen = None if read is None else [read[i] for i in chosen]
        batch = pack([sequences[i] for i in chosen], of_chosen)
        outputs = run(batch.inputs)
        if is_pooled:
            values = outputs[batch.rows, batch.slots]
        else:
            ranges = zip(batch.rows, batch.starts, batch.lengths)
            values = [outputs[r, a : a + n] for r, a, n in ranges]
        for index, value in zip(chosen, values, strict=True):
            results[index] = value
    return results


def _groups(lengths: list[int], max_tokens: int) -> list[list[int]]:
    """Groups sequences of similar lengths, at most `max_tokens` each."""
    groups: list[list[int]] = []
    free = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if lengths[index] > free:
            groups.append([])
            free = max(max_tokens, lengths[index])
        groups[-1].append(index)
        free -= lengths[index]
    return groups
