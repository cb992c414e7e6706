"""Rows to masked rows: which places are hidden, and behind what.

Places are chosen word by word, piece by piece or span by span; with one-word
spans it draws the numbers of google-research/bert
`create_pretraining_data.py` in the same order.
"""

import dataclasses
import random

from data.pretraining.settings import InstanceSettings


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """What masking must know of a vocabulary.

    Attributes:
        size: V, number of tokens.
        cls_id, sep_id, mask_id: ids of `[CLS]`, `[SEP]` and `[MASK]`.
        continuation_ids: ids of the pieces that start with `##`.
    """

    size: int
    cls_id: int
    sep_id: int
    mask_id: int
    continuation_ids: frozenset[int]

    @classmethod
    def of(cls, vocab: dict[str, int]) -> "Vocabulary":
        """Takes what is needed from token -> id."""
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
    """Chooses 15 % of the places; 80 % become `[MASK]`, 10 % a random piece.

    Args:
        ids: a row; `[CLS]` and `[SEP]` are never chosen. With
            `word_boundaries`, ids from V on are pieces that continue the
            word before them (`word_boundaries.mark`).
        settings: shares, and what is masked together.
        vocabulary: random pieces are any of its `size` tokens.
        rng: everything random is drawn from it.

    Returns:
        (ids after masking, chosen places ascending, what stood there); ids
        below V.
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
        chosen = _places(ids, vocabulary)
        _shuffle(chosen, rng)
        del chosen[wanted:]
    if settings.word_boundaries:
        ids = [token % vocabulary.size for token in ids]
    masked = list(ids)
    for place in chosen:
        if rng.random() < 0.8:
            masked[place] = vocabulary.mask_id
        elif rng.random() >= 0.5:
            masked[place] = rng.randint(0, vocabulary.size - 1)
    chosen.sort()
    return masked, chosen, [ids[place] for place in chosen]


def _places(ids: list[int], vocabulary: Vocabulary) -> list[int]:
    """Those that may be chosen."""
    cls_id, sep_id = vocabulary.cls_id, vocabulary.sep_id
    return [i for i, x in enumerate(ids) if x != cls_id and x != sep_id]


def _words(
    ids: list[int], settings: InstanceSettings, vocabulary: Vocabulary
) -> list[list[int]]:
    """Places of each word, or of each piece."""
    places = _places(ids, vocabulary)
    if not settings.do_whole_word_mask:
        return [[place] for place in places]
    words: list[list[int]] = []
    for place in places:
        if settings.word_boundaries:
            continues = ids[place] >= vocabulary.size
        else:
            continues = ids[place] in vocabulary.continuation_ids
        if continues and words:
            words[-1].append(place)
        else:
            words.append([place])
    return words


def _choose_words(
    words: list[list[int]], wanted: int, rng: random.Random
) -> list[int]:
    """Places of random words; one that does not fit any more is passed over."""
    _shuffle(words, rng)
    chosen: list[int] = []
    for places in words:
        if len(chosen) >= wanted:
            break
        if len(chosen) + len(places) <= wanted:
            chosen += places
    return chosen


def _shuffle(values: list, rng: random.Random) -> None:
    """`rng.shuffle(values)`, the same draws in half the time."""
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
    """Places of random spans of n words, n with a chance of 1/n.

    As in ALBERT (Lan et al. 2019, arXiv:1909.11942, formula 2). A span ends
    early at the end of its segment, at another span, and where the next word
    does not fit any more.
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
            places = words[index]
            apart = last is not None and places[0] != last + 1  # a [SEP]
            fits = len(chosen) + len(places) <= wanted
            if apart or not free[index] or not fits:
                break
            free[index] = False
            chosen += places
            last = places[-1]
    return chosen
