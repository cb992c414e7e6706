"""Masking of rows for the masked LM.

Positions are chosen by token, whole word or span, with the distributions of
google-research/bert `create_pretraining_data.py` and ALBERT's n-gram masking.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from bert.data import feature_names
from bert.data.pretraining.settings import InstanceSettings

# A key consists of instance number, 32 random bits, position.
_POSITION_BITS = 16
_POSITIONS = np.uint64((1 << _POSITION_BITS) - 1)
_NOWHERE = np.uint64(2**64 - 1)  # key of a position that cannot be chosen
_MASKED, _KEPT = (np.uint32(x * 2**32) for x in (0.8, 0.9))


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """The part of a vocabulary that masking uses.

    Attributes:
        size: int. V, number of tokens.
        cls_id, sep_id, mask_id: int. Ids of `[CLS]`, `[SEP]` and `[MASK]`.
        continues: bool [V]. Whether each token starts with `##`.
    """

    size: int
    cls_id: int
    sep_id: int
    mask_id: int
    continues: np.ndarray

    @classmethod
    def of(cls, vocab: dict[str, int]) -> "Vocabulary":
        """Makes it from a vocabulary, token -> id."""
        return cls(
            size=len(vocab),
            cls_id=vocab["[CLS]"],
            sep_id=vocab["[SEP]"],
            mask_id=vocab["[MASK]"],
            continues=np.array([token.startswith("##") for token in vocab]),
        )


@dataclasses.dataclass(frozen=True)
class _Words:
    """Units that are masked together: words or tokens.

    Positions are numbered across all rows: row * S + column.

    Attributes:
        positions: int64 [C]. Positions that may be masked (candidates).
        of_position: int64 [C]. Word of each candidate, from 0.
        firsts, lasts: int64 [W]. First and last position of each word.
        sizes: int64 [W]. Number of positions of each word.
    """

    positions: np.ndarray
    of_position: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray
    sizes: np.ndarray


def count_masks(lengths: np.ndarray, settings: InstanceSettings) -> np.ndarray:
    """Returns the maximum number of masks for instances of these lengths."""
    count = np.rint(lengths * settings.masked_lm_prob).astype(np.int64)
    return np.clip(count, 1, settings.max_predictions_per_seq)


def mask_rows(
    ids: np.ndarray,
    numbers: np.ndarray,
    settings: InstanceSettings,
    vocabulary: Vocabulary,
    draw: Callable[[int], np.ndarray],
) -> dict[str, np.ndarray]:
    """Masks tokens for the masked LM.

    By default, chooses 15% of the positions of each instance. 80% of them
    become `[MASK]`, 10% a random token, and 10% keep their token.

    Args:
        ids: int32 [N, S]. Token ids; `[CLS]` and `[SEP]` are never chosen.
            With `word_boundaries`, ids from V on are wordpieces that continue
            the previous word (see `word_boundaries`).
        numbers: int [N, S]. Instance of each token, from 1; 0 = padding.
        settings: InstanceSettings. Probabilities, and the unit of masking.
        vocabulary: Vocabulary. Random tokens are drawn from all its tokens.
        draw: callable. Maps a number of columns to random numbers, uint32
            [N, columns]; called once.

    Returns:
        dict. The features that masking changes: ids after masking, int32
        [N, S], all below V; chosen positions, ascending, and original ids at
        these positions, int32 [N, P]; weights, float32 [N, P], 0 = padding.
    """
    count, length = ids.shape
    most = settings.max_predictions_per_seq
    spans = length if settings.max_ngram > 1 else 0
    drawn = draw(length + 2 * most + spans)
    keys, rest, spans = np.split(drawn, [length, length + 2 * most], axis=1)

    candidates = (ids != vocabulary.cls_id) & (ids != vocabulary.sep_id)
    candidates &= numbers > 0
    wanted = _wanted(numbers, settings)

    if settings.max_ngram == 1 and not settings.do_whole_word_mask:
        chosen = _choose_tokens(keys, numbers, candidates, wanted)
    else:
        words = _words(ids, numbers, candidates, settings, vocabulary)
        lengths = _span_lengths(spans, words, settings)
        chosen = _choose_spans(keys, numbers, words, wanted, lengths)

    if settings.word_boundaries:  # remove the marks
        ids = ids % np.int32(vocabulary.size)
    return _replace(ids, chosen, rest, vocabulary)


def _wanted(numbers: np.ndarray, settings: InstanceSettings) -> np.ndarray:
    """Returns each instance's number of masks, at most P per row: [N, K]."""
    instances = max(1, int(numbers.max(initial=0)))
    lengths = np.stack(
        [(numbers == k + 1).sum(axis=1) for k in range(instances)], axis=1
    )
    wanted = count_masks(lengths, settings) * (lengths > 0)

    # A row has at most P masks.
    total = np.cumsum(wanted, axis=1)
    total = np.minimum(total, settings.max_predictions_per_seq)
    return np.diff(total, axis=1, prepend=0)


def _sorted_keys(
    keys: np.ndarray, numbers: np.ndarray, there: np.ndarray
) -> np.ndarray:
    """Orders the positions of each instance randomly.

    Returns:
        uint64 [N, S]. Sorted keys, with the position in the lowest bits.
    """
    order = (numbers.astype(np.uint64) << np.uint64(32)) | keys
    order <<= np.uint64(_POSITION_BITS)
    order |= np.arange(keys.shape[1], dtype=np.uint64)
    np.copyto(order, _NOWHERE, where=~there)
    order.sort(axis=1)
    return order


def _choose_tokens(
    keys: np.ndarray,
    numbers: np.ndarray,
    candidates: np.ndarray,
    wanted: np.ndarray,
) -> np.ndarray:
    """Chooses the candidates of each instance with the smallest keys.

    Returns:
        int64. Positions, numbered across all rows, ascending.
    """
    count, length = candidates.shape
    order = _sorted_keys(keys, numbers, candidates)
    columns = np.arange(length)

    # In this order, the keys of an instance are adjacent.
    first = np.zeros((count, 1), np.int64)  # column of the instance
    taken = np.zeros((count, length), bool)
    for k in range(wanted.shape[1]):
        there = candidates & (numbers == k + 1)
        size = there.sum(axis=1, keepdims=True)
        last = first + np.minimum(size, wanted[:, k : k + 1])
        taken |= (columns >= first) & (columns < last)
        first += size

    flat = np.flatnonzero(taken)
    positions = order.ravel()[flat] & _POSITIONS
    chosen = np.zeros(count * length, bool)
    chosen[flat - flat % length + positions.astype(np.int64)] = True
    return np.flatnonzero(chosen)


def _words(
    ids: np.ndarray,
    numbers: np.ndarray,
    candidates: np.ndarray,
    settings: InstanceSettings,
    vocabulary: Vocabulary,
) -> _Words:
    """Splits the candidates of all rows into words or tokens."""
    positions = np.flatnonzero(candidates)
    starts = np.ones(len(positions), bool)
    if settings.do_whole_word_mask:
        tokens = ids.ravel()[positions]
        if settings.word_boundaries:
            continues = tokens >= vocabulary.size
        else:
            continues = vocabulary.continues[tokens]

        # The first candidate of an instance starts a word.
        owners = numbers.ravel()[positions].astype(np.int64)
        owners += positions // ids.shape[1] << _POSITION_BITS
        starts[1:] = ~continues[1:] | (owners[1:] != owners[:-1])

    bounds = np.append(np.flatnonzero(starts), len(positions))
    return _Words(
        positions,
        np.cumsum(starts) - 1,
        firsts=positions[bounds[:-1]],
        lasts=positions[bounds[1:] - 1],
        sizes=np.diff(bounds),
    )


def _span_lengths(
    draws: np.ndarray, words: _Words, settings: InstanceSettings
) -> np.ndarray:
    """Draws the length of the span of each word: int64 [W].

    A length of n has the weight 1/n (Lan et al. 2019, arXiv:1909.11942,
    formula 2).
    """
    if settings.max_ngram == 1:
        return np.ones(len(words.firsts), np.int64)
    chances = np.cumsum(1 / np.arange(1, settings.max_ngram + 1))
    limits = chances[:-1] / chances[-1] * 2.0**32
    draws = draws.ravel()[words.firsts]
    return 1 + np.searchsorted(limits, draws, side="right")


def _choose_spans(
    keys: np.ndarray,
    numbers: np.ndarray,
    words: _Words,
    wanted: np.ndarray,
    lengths: np.ndarray,
) -> np.ndarray:
    """Chooses random spans of words, in all rows at once.

    In each round, each row takes its next word in random order, and the words
    after it up to the length of its span. A span ends early at the end of its
    segment, at another span, or if the next word would exceed the limit.

    Returns:
        int64. Positions, numbered across all rows, ascending.
    """
    count, length = keys.shape
    word_at = np.full(count * length, -1)
    word_at[words.firsts] = np.arange(len(words.firsts))

    rows = words.firsts // length
    rounds = int(np.bincount(rows).max(initial=0))
    there = word_at.reshape(count, length) >= 0
    order = _sorted_keys(keys, numbers, there)[:, :rounds].T.copy()

    # Number of positions that can still be masked in each instance.
    numbers = numbers.ravel()[words.firsts].astype(np.int64)
    budgets = rows * wanted.shape[1] + numbers - 1
    left, free = wanted.ravel().copy(), np.ones(len(rows), bool)

    row = np.arange(count)
    for column in order:
        # Keep the rows that have masks and words left.
        row = row[left.reshape(count, -1)[row].any(axis=1)]
        row = row[column[row] != _NOWHERE]
        if not len(row):
            break

        position = (column[row] & _POSITIONS).astype(np.int64)
        word = word_at[row * length + position]
        end = np.minimum(word + lengths[word], len(rows))
        while len(word):
            fits = free[word] & (words.sizes[word] <= left[budgets[word]])
            word, end = word[fits], end[fits]
            free[word] = False
            left[budgets[word]] -= words.sizes[word]

            more = word + 1 < end
            word, end = word[more] + 1, end[more]
            # Spans do not cross a [SEP].
            near = words.firsts[word] == words.lasts[word - 1] + 1
            word, end = word[near], end[near]
    return words.positions[~free[words.of_position]]


def _replace(
    ids: np.ndarray,
    chosen: np.ndarray,
    drawn: np.ndarray,
    vocabulary: Vocabulary,
) -> dict[str, np.ndarray]:
    """Replaces the tokens at the chosen positions.

    Args:
        ids: int32 [N, S]. Token ids, all below V.
        chosen: int64. Positions, numbered across all rows, ascending; at most
            P per row.
        drawn: uint32 [N, 2 P]. Random numbers.
        vocabulary: Vocabulary. Vocabulary of the ids.
    """
    count, length = ids.shape
    most = drawn.shape[1] // 2
    rows = chosen // length
    counts = np.bincount(rows, minlength=count)
    columns = np.arange(len(chosen)) - np.repeat(
        np.cumsum(counts) - counts, counts
    )

    # 80% [MASK], 10% a random token, 10% the original token.
    old = ids.ravel()[chosen]
    kind, token = drawn[rows, columns], drawn[rows, most + columns]
    token = token * np.uint64(vocabulary.size) >> np.uint64(32)
    new = np.where(kind < _KEPT, old, token.astype(np.int32))
    new = np.where(kind < _MASKED, np.int32(vocabulary.mask_id), new)
    masked = ids.copy()
    masked.ravel()[chosen] = new

    positions, labels = np.zeros((2, count, most), np.int32)
    weights = np.zeros((count, most), np.float32)
    positions[rows, columns] = chosen - rows * length
    labels[rows, columns] = old
    weights[rows, columns] = 1.0
    return {
        feature_names.INPUT_IDS: masked,
        feature_names.MASKED_LM_POSITIONS: positions,
        feature_names.MASKED_LM_IDS: labels,
        feature_names.MASKED_LM_WEIGHTS: weights,
    }
