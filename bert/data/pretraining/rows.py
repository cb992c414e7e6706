"""Makes the pre-training records of a partition, with array operations.

pairs (ranges of tokens) -> rows (one gather) -> masks -> bytes
"""

import functools
from collections import Counter
from collections.abc import Iterator

import numpy as np

from bert.data import feature_names
from bert.data.pretraining import draws, instances, masking, packing
from bert.data.pretraining.settings import InstanceSettings
from bert.data.records import encoding

_CELLS_AT_ONCE = 1 << 17  # tokens of a block of rows, to limit memory


def make_records(
    documents: instances.TokenizedDocuments,
    number: int,
    partition: int,
    settings: InstanceSettings,
    vocabulary: masking.Vocabulary,
    fraction: float = 1.0,
) -> tuple[list[bytes], dict[str, int]]:
    """Makes the records of one pass over a partition of the corpus.

    The records depend only on the arguments.

    Args:
        documents: TokenizedDocuments. At least two documents that are not
            empty.
        number: int. Number of the pass, from 0.
        partition: int. Number of the partition in the corpus.
        settings: InstanceSettings. Lengths, probabilities and seed.
        vocabulary: masking.Vocabulary. Vocabulary of the ids in `documents`.
        fraction: float. Probability that a document is used. Default: 1.

    Returns:
        (list of bytes, dict). The serialized records, and the counts of
        `count_rows`.
    """
    counts = Counter()
    records: list[bytes] = []
    for rows in make_rows(
        documents, number, partition, settings, vocabulary, fraction
    ):
        counts.update(count_rows(rows, vocabulary.mask_id))
        records += encoding.encode_examples(rows)
    return records, counts


def make_rows(
    documents: instances.TokenizedDocuments,
    number: int,
    partition: int,
    settings: InstanceSettings,
    vocabulary: masking.Vocabulary,
    fraction: float = 1.0,
) -> Iterator[dict[str, np.ndarray]]:
    """Makes the rows of `make_records` in blocks, at least one.

    Args:
        documents, number, partition, settings, vocabulary, fraction: See
            `make_records`.

    Yields:
        dict. Name -> integers or float32 [N, length], the features of
        `feature_names.pretraining_schema` or `packed_schema`.
    """
    key = (settings.random_seed, partition, number)
    pairs = instances.draw_pairs(
        documents, settings, draws.generator(*key, "pairs"), fraction
    )

    # One pair per row, or as many as fit.
    count = len(pairs.a_starts)
    order, ends = np.arange(count), np.arange(1, count + 1)
    if settings.pack_sequences:
        order, ends = packing.pack(
            pairs.lengths, settings, draws.generator(*key, "pack")
        )

    step = max(1, _CELLS_AT_ONCE // settings.max_seq_length)
    for first in range(0, max(1, len(ends)), step):
        block = ends[first : first + step]
        start = ends[first - 1] if first else 0
        stop = block[-1] if len(block) else start
        rows = _join(
            documents.ids,
            pairs.take(order[start:stop]),
            block - start,
            settings,
            vocabulary,
        )

        # The random numbers of a row do not depend on its block.
        numbers = rows.get(
            feature_names.SEQUENCE_IDS, rows[feature_names.INPUT_MASK]
        )
        masked = masking.mask_rows(
            rows[feature_names.INPUT_IDS],
            numbers,
            settings,
            vocabulary,
            functools.partial(draws.rows, (*key, "masks"), first, len(block)),
        )
        yield {**rows, **masked}


def count_rows(rows: dict[str, np.ndarray], mask_id: int) -> dict[str, int]:
    """Counts instances, their tokens and their masked tokens.

    Args:
        rows: dict. A block of `make_rows`.
        mask_id: int. Id of `[MASK]`.
    """
    labels = rows[feature_names.NEXT_SENTENCE_LABELS]
    weights = rows.get(
        feature_names.NEXT_SENTENCE_WEIGHTS, np.ones(labels.shape)
    )
    is_pair = weights.astype(bool)

    # Masked positions.
    real = rows[feature_names.MASKED_LM_WEIGHTS] > 0
    positions = rows[feature_names.MASKED_LM_POSITIONS]
    tokens = np.take_along_axis(
        rows[feature_names.INPUT_IDS], positions, axis=1
    )
    masked = tokens == mask_id
    replaced = ~masked & (tokens != rows[feature_names.MASKED_LM_IDS])

    return {
        "instances": int(np.count_nonzero(is_pair)),
        "random_next": int(labels[is_pair].sum()),
        "row_tokens": int(np.count_nonzero(rows[feature_names.INPUT_MASK])),
        "predictions": int(np.count_nonzero(real)),
        "predictions_masked": int(np.count_nonzero(masked & real)),
        "predictions_random": int(np.count_nonzero(replaced & real)),
    }


def _join(
    tokens: np.ndarray,
    pairs: instances.Pairs,
    ends: np.ndarray,
    settings: InstanceSettings,
    vocabulary: masking.Vocabulary,
) -> dict[str, np.ndarray]:
    """Joins pairs to rows, before masking.

    Args:
        tokens: int32 [T]. All tokens of the documents.
        pairs: Pairs. The pairs of the rows, in order.
        ends: int64 [N]. End of each row, counted in pairs.
        settings: InstanceSettings. S, and whether a row may have several
            pairs.
        vocabulary: masking.Vocabulary. Vocabulary of the tokens.
    """
    # [CLS] a [SEP] b [SEP]: the index in `tokens` for each column.
    columns = np.arange(settings.max_seq_length)
    lengths = pairs.lengths
    a = (pairs.a_ends - pairs.a_starts)[:, None]
    in_b = columns > a + 1
    origins = np.where(
        in_b, pairs.b_starts[:, None] - a - 2, pairs.a_starts[:, None] - 1
    )

    there = columns < lengths[:, None]
    ids = tokens.take(origins + columns, mode="clip")
    ids[:, 0] = vocabulary.cls_id
    each = np.arange(len(ids))
    ids[each, a[:, 0] + 1] = ids[each, lengths - 1] = vocabulary.sep_id

    labels = pairs.is_random_next.astype(np.int32)
    if not settings.pack_sequences:
        return {
            feature_names.INPUT_IDS: ids * there,
            feature_names.INPUT_MASK: there,
            feature_names.SEGMENT_IDS: in_b & there,
            feature_names.NEXT_SENTENCE_LABELS: labels[:, None],
        }

    # Packed: the tokens of a row's pairs are concatenated.
    counts = np.diff(ends, prepend=0)
    starts = ends - counts
    most = packing.max_sequences_per_row(settings.max_seq_length)
    slots = each - np.repeat(starts, counts)

    tokens_before = np.cumsum(lengths) - lengths
    row_starts = tokens_before[starts] if len(starts) else starts
    row_lengths = np.add.reduceat(lengths, starts) if len(starts) else starts

    filled = columns < row_lengths[:, None]
    real = np.arange(most) < counts[:, None]

    def spread(values: np.ndarray, where: np.ndarray) -> np.ndarray:
        row_values = np.zeros(where.shape, np.int32)
        row_values[where] = values
        return row_values

    def flat(values: np.ndarray) -> np.ndarray:
        return np.broadcast_to(values, there.shape)[there]

    return {
        feature_names.INPUT_IDS: spread(flat(ids), filled),
        feature_names.INPUT_MASK: filled,
        feature_names.SEGMENT_IDS: spread(flat(in_b), filled),
        feature_names.NEXT_SENTENCE_LABELS: spread(labels, real),
        feature_names.POSITION_IDS: spread(flat(columns), filled),
        feature_names.SEQUENCE_IDS: spread(flat(slots[:, None] + 1), filled),
        feature_names.NEXT_SENTENCE_POSITIONS: spread(
            tokens_before - np.repeat(row_starts, counts), real
        ),
        feature_names.NEXT_SENTENCE_WEIGHTS: real.astype(np.float32),
    }
