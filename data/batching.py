"""Rows of many lengths to batches of few lengths, and back in order."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from data import features, sequences

Row = tuple[list[int], list[int]]  # ids and segment ids, not padded


def bucket_lengths(max_seq_length: int) -> list[int]:
    """The lengths that rows are padded to: 16, 24, 32, 48, 64, 96, ...

    Args:
        max_seq_length: S, the last one.
    """
    lengths, power = [], 16
    while power < max_seq_length:
        lengths += [power, power + power // 2]
        power *= 2
    return [x for x in lengths if x < max_seq_length] + [max_seq_length]


def in_order(
    rows: Iterable[Row],
    run: Callable[[dict[str, np.ndarray]], list],
    lengths: list[int],
    batch_size: int,
    window: int,
) -> Iterator:
    """Runs rows in batches of like length; results come in their order.

    Args:
        rows: of at most `lengths[-1]` ids; read as results are asked for.
        run: the encoder's inputs, int32 [B, S] each, to one result for each
            row; a batch has at most `batch_size` rows.
        lengths: S of the batches, ascending.
        batch_size: rows of a batch.
        window: rows that are held and sorted by length at a time.

    Yields:
        the result of each row.
    """
    held: list[Row] = []
    for row in rows:
        held.append(row)
        if len(held) == window:
            yield from _run_window(held, run, lengths, batch_size)
            held = []
    yield from _run_window(held, run, lengths, batch_size)


def pad(rows: list[Row], length: int) -> dict[str, np.ndarray]:
    """Pads rows to the encoder's inputs, int32 [N, length] each."""
    columns = {
        features.INPUT_IDS: [ids for ids, _ in rows],
        features.INPUT_MASK: [[1] * len(ids) for ids, _ in rows],
        features.SEGMENT_IDS: [segments for _, segments in rows],
    }
    return {
        name: sequences.pad_rows(values, length, np.int32)
        for name, values in columns.items()
    }


def _run_window(held, run, lengths, batch_size) -> list:
    order = sorted(range(len(held)), key=lambda i: len(held[i][0]))
    results: list = [None] * len(held)
    at = 0
    for length in lengths:
        start = at
        while at < len(order) and len(held[order[at]][0]) <= length:
            at += 1
        for first in range(start, at, batch_size):
            chosen = order[first : min(first + batch_size, at)]
            found = run(pad([held[i] for i in chosen], length))
            for index, result in zip(chosen, found, strict=True):
                results[index] = result
    return results
