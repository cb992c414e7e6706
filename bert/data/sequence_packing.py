"""Packs short sequences into shared rows, to reduce padding.

    lengths 3 7 2 6 5 4    rows  7 2 | 6 3 | 5 4

Attention does not cross sequences, so the outputs are the same.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

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
        rows: int [N]. Row of each sequence.
        slots: int [N]. Index of each sequence in its row.
        starts: int [N]. First column of each sequence.
        lengths: int [N]. Number of tokens of each sequence.
    """

    inputs: dict[str, np.ndarray]
    rows: np.ndarray
    slots: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


def pack(
    sequences: list[TokenSequence], read: Sequence[int] | None = None
) -> PackedBatch:
    """Distributes sequences over rows, longest first, back and forth.

    Args:
        sequences: list of TokenSequence. N sequences, N > 0.
        read: sequence of N int, or None. Index of the token of each sequence
            that a head reads. Default: None, `[CLS]`.
    """
    lengths = np.array([len(ids) for ids, _ in sequences])
    longest = max(_WIDTH, lengths.max())
    count = -(-int(lengths.sum()) // int(longest))

    # Rows are filled back and forth: 0 1 2, 2 1 0, 0 1 2.
    slot, index = np.divmod(np.arange(len(lengths)), count)
    order = np.argsort(-lengths, kind="stable")
    rows, slots = np.empty_like(order), np.empty_like(order)
    rows[order] = np.where(slot % 2 == 0, index, count - 1 - index)
    slots[order] = slot

    taken = np.zeros((count, slot[-1] + 1), int)
    taken[rows, slots] = lengths
    first = np.cumsum(taken, 1) - taken  # first column of each slot
    width = -(-int(taken.sum(1).max()) // _MULTIPLE) * _MULTIPLE
    starts = first[rows, slots]

    # The T tokens of all sequences, and their cells in the rows.
    position = np.arange(lengths.sum()) - np.repeat(
        np.cumsum(lengths) - lengths, lengths
    )
    cell = np.repeat(rows * width + starts, lengths) + position
    values = {
        feature_names.INPUT_IDS: np.concatenate([ids for ids, _ in sequences]),
        feature_names.INPUT_MASK: 1,
        feature_names.SEGMENT_IDS: np.concatenate([x for _, x in sequences]),
        feature_names.POSITION_IDS: position,
        feature_names.SEQUENCE_IDS: np.repeat(slots + 1, lengths),
    }
    inputs = {}
    for name, value in values.items():
        inputs[name] = np.zeros((count, width), np.int32)
        inputs[name].reshape(-1)[cell] = value

    # A row with fewer sequences has unused slots at its end.
    positions = np.minimum(first, width - 1).astype(np.int32)
    positions[rows, slots] += 0 if read is None else np.array(read, np.int32)
    inputs[feature_names.NEXT_SENTENCE_POSITIONS] = positions
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
