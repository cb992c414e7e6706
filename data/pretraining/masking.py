"""Masking of sequences for the masked LM.

Positions are chosen by token, by whole word or by span. Except for spans of
several words, the random numbers are drawn in the order of google-research/bert
`create_pretraining_data.py`.
"""

import dataclasses
import random

from data.pretraining.settings import InstanceSettings


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """The part of a vocabulary that masking uses.

    Attributes:
        size: V, number of tokens.
        cls_id, sep_id, mask_id: ids of `[CLS]`, `[SEP]` and `[MASK]`.
        continuation_ids: ids of the wordpieces that start with `##`.
    """

    size: int
    cls_id: int
    sep_id: int
    mask_id: int
    continuation_ids: frozenset[int]

    @classmethod
    def of(cls, vocab: dict[str, int]) -> "Vocabulary":
        """Extracts it from a vocabulary, token -> id."""
        return cls(
            size=len(vocab),
            cls_id=vocab["[CLS]"],
            sep_id=vocab["[SEP]"],
            mask_id=vocab["[MASK]"],
            continuation_ids=frozenset(
                i for token, i in vocab.items() if token.startswith("##")
            ),
        )


def mask_tokens(
    ids: list[int],
    settings: InstanceSettings,
    vocabulary: Vocabulary,
    rng: random.Random,
) -> tuple[list[int], list[int], list[int]]:
    """Masks tokens for the masked LM.

    Chooses 15 % of the positions; 80 % of them become `[MASK]`, 10 % a random
    token, and 10 % keep their token.

    Args:
        ids: a sequence; `[CLS]` and `[SEP]` are never chosen. With
            `word_boundaries`, ids from V on are wordpieces that continue the
            word before them (`word_boundaries.mark`).
        settings: shares, and which tokens are masked together.
        vocabulary: random tokens are drawn from all its `size` tokens.
        rng: source of all random numbers.

    Returns:
        (ids after masking, chosen positions ascending, original ids at these
        positions); all ids are below V.
    """
    wanted = min(
        settings.max_predictions_per_seq,
        max(1, int(round(len(ids) * settings.masked_lm_prob))),
    )
    if settings.max_ngram > 1:
        words = _words(ids, settings, vocabulary)
        chosen = _choose_spans(words, wanted, settings.max_ngram, rng)
    elif settings.do_whole_word_mask:
        chosen = _choose_words(_words(ids, settings, vocabulary), wanted, rng)
    else:
        chosen = _candidates(ids, vocabulary)
        _shuffle(chosen, rng)
        del chosen[wanted:]
    if settings.word_boundaries:
        ids = [token % vocabulary.size for token in ids]
    masked = list(ids)
    for position in chosen:
        if rng.random() < 0.8:
            masked[position] = vocabulary.mask_id
        elif rng.random() >= 0.5:
            masked[position] = rng.randint(0, vocabulary.size - 1)
    chosen.sort()
    return masked, chosen, [ids[position] for position in chosen]


def _candidates(ids: list[int], vocabulary: Vocabulary) -> list[int]:
    """Positions that may be masked."""
    cls_id, sep_id = vocabulary.cls_id, vocabulary.sep_id
    return [i for i, x in enumerate(ids) if x != cls_id and x != sep_id]


def _words(
    ids: list[int], settings: InstanceSettings, vocabulary: Vocabulary
) -> list[list[int]]:
    """Positions of each word, or of each token."""
    candidates = _candidates(ids, vocabulary)
    if not settings.do_whole_word_mask:
        return [[position] for position in candidates]
    words: list[list[int]] = []
    for position in candidates:
        if settings.word_boundaries:
            continues = ids[position] >= vocabulary.size
        else:
            continues = ids[position] in vocabulary.continuation_ids
        if continues and words:
            words[-1].append(position)
        else:
            words.append([position])
    return words


def _choose_words(
    words: list[list[int]], wanted: int, rng: random.Random
) -> list[int]:
    """Positions of random words; words that no longer fit are skipped."""
    _shuffle(words, rng)
    chosen: list[int] = []
    for positions in words:
        if len(chosen) >= wanted:
            break
        if len(chosen) + len(positions) <= wanted:
            chosen += positions
    return chosen


def _shuffle(values: list, rng: random.Random) -> None:
    """Does what `rng.shuffle` does, with the same draws, in half the time."""
    getrandbits = rng.getrandbits
    for last in range(len(values) - 1, 0, -1):
        bits = (last + 1).bit_length()
        other = getrandbits(bits)
        while other > last:
            other = getrandbits(bits)
        values[last], values[other] = values[other], values[last]


def _choose_spans(
    words: list[list[int]], wanted: int, max_ngram: int, rng: random.Random
) -> list[int]:
    """Positions of random spans of n words, each with weight 1/n.

    As in ALBERT (Lan et al. 2019, arXiv:1909.11942, formula 2). A span ends
    early at the end of its segment, at another span, and where the next word
    no longer fits.
    """
    lengths = range(1, max_ngram + 1)
    chances = [1 / n for n in lengths]
    starts = list(range(len(words)))
    rng.shuffle(starts)
    free = [True] * len(words)
    chosen: list[int] = []
    for start in starts:
        if len(chosen) >= wanted:
            break
        (length,) = rng.choices(lengths, chances)
        last = None
        for index in range(start, min(start + length, len(words))):
            positions = words[index]
            apart = last is not None and positions[0] != last + 1  # a [SEP]
            fits = len(chosen) + len(positions) <= wanted
            if apart or not free[index] or not fits:
                break
            free[index] = False
            chosen += positions
            last = positions[-1]
    return chosen
