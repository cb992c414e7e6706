"""The algorithm of the original `create_pretraining_data.py`, on lists of ids.

It draws the same random numbers in the same order as google-research/bert, so
that the same documents and the same `random.Random` give the same instances:
the oracle of `data.pretraining`, whose distributions must equal these. Spans of
several words are those of ALBERT.
"""

import dataclasses
import random

from bert.data import sequences
from bert.data.pretraining.masking import Vocabulary
from bert.data.pretraining.settings import InstanceSettings

Document = list[list[int]]  # sentences of ids


@dataclasses.dataclass(frozen=True)
class Instance:
    """A sequence before padding.

    Attributes:
        ids: `[CLS] a [SEP] b [SEP]`, masked.
        segment_ids: 0 for a, 1 for b.
        is_random_next: whether b comes from another document.
        masked_lm_positions: masked positions, ascending.
        masked_lm_ids: original ids at these positions.
    """

    ids: list[int]
    segment_ids: list[int]
    is_random_next: bool
    masked_lm_positions: list[int]
    masked_lm_ids: list[int]


def partition_instances(
    documents: list[Document],
    number: int,
    partition: int,
    settings: InstanceSettings,
    vocabulary: Vocabulary,
    share: float = 1.0,
) -> list[Instance]:
    """Makes the instances of one pass over a partition of the corpus.

    They are a function of the arguments alone.

    Args:
        documents: documents of the partition; at least two, none empty.
        number: number of the pass, from 0.
        partition: number of the partition in the corpus.
        settings: lengths, shares and seed.
        vocabulary: vocabulary of the ids in `documents`.
        share: probability that a document is used.
    """
    seed = f"{settings.random_seed}/{partition}/{number}"
    rng, choice = random.Random(seed), random.Random(f"{seed}/share")
    instances = []
    for index in range(len(documents)):
        if choice.random() < share:
            instances.extend(
                create_instances_from_document(
                    documents, index, settings, vocabulary, rng
                )
            )
    return instances


def create_instances_from_document(
    documents: list[Document],
    index: int,
    settings: InstanceSettings,
    vocabulary: Vocabulary,
    rng: random.Random,
) -> list[Instance]:
    """Splits a document into sentence pairs and masks them.

    Args:
        documents: source of random next sentences; at least two.
        index: number of the document to split.
        settings: lengths and shares.
        vocabulary: vocabulary of the ids in `documents`.
        rng: source of all random numbers.

    Returns:
        Instances in the order of the document.
    """
    document = documents[index]
    max_tokens = settings.max_seq_length - 3  # [CLS], [SEP], [SEP]
    target_length = max_tokens
    if rng.random() < settings.short_seq_prob:
        target_length = rng.randint(2, max_tokens)
    instances = []
    chunk: Document = []
    length = i = 0
    while i < len(document):
        chunk.append(document[i])
        length += len(document[i])
        if i == len(document) - 1 or length >= target_length:
            a_end = 1
            if len(chunk) >= 2:
                a_end = rng.randint(1, len(chunk) - 1)
            a = [token for sentence in chunk[:a_end] for token in sentence]
            is_random_next = len(chunk) == 1 or rng.random() < 0.5
            if is_random_next:
                b = _random_next(documents, index, target_length - len(a), rng)
                i -= len(chunk) - a_end  # put the unused sentences back
            else:
                b = [token for sentence in chunk[a_end:] for token in sentence]
            a, b = truncate_pair_randomly(a, b, max_tokens, rng)
            ids, segment_ids = sequences.join_pair(
                a, b, vocabulary.cls_id, vocabulary.sep_id
            )
            masked, positions, labels = mask_tokens(
                ids, settings, vocabulary, rng
            )
            instances.append(
                Instance(masked, segment_ids, is_random_next, positions, labels)
            )
            chunk = []
            length = 0
        i += 1
    return instances


def _random_next(
    documents: list[Document],
    index: int,
    target_length: int,
    rng: random.Random,
) -> list[int]:
    """Sentences from a random position in another document."""
    for _ in range(10):
        other = rng.randint(0, len(documents) - 1)
        if other != index:
            break
    else:
        # The original takes the same document here and labels it random.
        other = (index + 1) % len(documents)
    document = documents[other]
    b: list[int] = []
    for sentence in document[rng.randint(0, len(document) - 1) :]:
        b.extend(sentence)
        if len(b) >= target_length:
            break
    return b


def truncate_pair_randomly(
    a: list[int], b: list[int], max_tokens: int, rng: random.Random
) -> tuple[list[int], list[int]]:
    """Truncates the longer segment, at random ends, until both fit.

    Draws the same random numbers as the original's `truncate_seq_pair`, in
    the same order, but slices once: the original takes quadratic time.

    Args:
        a: ids of the first segment.
        b: ids of the second segment; truncated if both have the same length.
        max_tokens: maximum length of both together.
        rng: source of one number for each dropped id.

    Returns:
        the two segments, truncated.
    """
    front, length = [0, 0], [len(a), len(b)]
    for _ in range(len(a) + len(b) - max_tokens):
        longer = 0 if length[0] > length[1] else 1
        length[longer] -= 1
        if rng.random() < 0.5:
            front[longer] += 1
    return (
        a[front[0] : front[0] + length[0]],
        b[front[1] : front[1] + length[1]],
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
            continues = vocabulary.continues[ids[position]]
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
