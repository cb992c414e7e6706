"""Documents to pre-training instances: sentence pairs with masked pieces.

The algorithm of google-research/bert `create_pretraining_data.py` on ids in
place of strings. It draws the same random numbers in the same order, so the
same documents and the same `random.Random` give the same instances.
"""

import dataclasses
import random

import numpy as np

from data import features, sequences

Document = list[list[int]]  # sentences of ids


@dataclasses.dataclass(frozen=True)
class Settings:
    """How instances are made; the names are those of the flags.

    Attributes:
        max_seq_length: S, ids in a row, special tokens included; at least 5.
        max_predictions_per_seq: P, at most so many masked places in a row.
        masked_lm_prob: share of a row's tokens that is masked.
        short_seq_prob: share of documents cut into shorter sequences.
        dupe_factor: how often the corpus is gone through, with other masks.
        do_whole_word_mask: mask all pieces of a word or none.
        random_seed: of everything that is drawn.
    """

    max_seq_length: int = 128
    max_predictions_per_seq: int = 20
    masked_lm_prob: float = 0.15
    short_seq_prob: float = 0.1
    dupe_factor: int = 10
    do_whole_word_mask: bool = False
    random_seed: int = 12345


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


@dataclasses.dataclass(frozen=True)
class Instance:
    """One row before padding.

    Attributes:
        ids: `[CLS] a [SEP] b [SEP]`, masked.
        segment_ids: 0 for a, 1 for b.
        is_random_next: b comes from another document.
        masked_lm_positions: masked places, ascending.
        masked_lm_ids: what stood there.
    """

    ids: list[int]
    segment_ids: list[int]
    is_random_next: bool
    masked_lm_positions: list[int]
    masked_lm_ids: list[int]


def bucket_instances(
    documents: list[Document],
    copy: int,
    bucket: int,
    settings: Settings,
    vocabulary: Vocabulary,
) -> list[Instance]:
    """Instances of one copy of a bucket, a function of its arguments alone.

    Args:
        documents: at least two, none empty.
        copy: 0 to `dupe_factor` - 1.
        bucket: number of the bucket in the corpus.
        settings: lengths, shares and seed.
        vocabulary: of the ids in `documents`.
    """
    rng = random.Random(f"{settings.random_seed}/{bucket}/{copy}")
    instances = []
    for index in range(len(documents)):
        instances.extend(
            create_instances_from_document(
                documents, index, settings, vocabulary, rng
            )
        )
    return instances


def create_instances_from_document(
    documents: list[Document],
    index: int,
    settings: Settings,
    vocabulary: Vocabulary,
    rng: random.Random,
) -> list[Instance]:
    """Cuts one document into sentence pairs and masks them.

    Args:
        documents: where random next sentences are taken from; at least two.
        index: the document to cut.
        settings: lengths and shares.
        vocabulary: of the ids in `documents`.
        rng: everything random is drawn from it.

    Returns:
        instances in the order of the document.
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
            a, b = sequences.truncate_pair_randomly(a, b, max_tokens, rng)
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


def mask_tokens(
    ids: list[int],
    settings: Settings,
    vocabulary: Vocabulary,
    rng: random.Random,
) -> tuple[list[int], list[int], list[int]]:
    """Chooses 15 % of the places; 80 % become `[MASK]`, 10 % a random piece.

    With whole-word masking a word that does not fit what is left to choose
    is passed over.

    Args:
        ids: a row; `[CLS]` and `[SEP]` are never chosen.
        settings: shares, and whether whole words are masked.
        vocabulary: random pieces are any of its `size` tokens.
        rng: everything random is drawn from it.

    Returns:
        (ids after masking, chosen places ascending, what stood there).
    """
    candidates: list[list[int]] = []
    for place, token in enumerate(ids):
        if token in (vocabulary.cls_id, vocabulary.sep_id):
            continue
        if (
            settings.do_whole_word_mask
            and candidates
            and token in vocabulary.continuation_ids
        ):
            candidates[-1].append(place)
        else:
            candidates.append([place])
    rng.shuffle(candidates)
    wanted = min(
        settings.max_predictions_per_seq,
        max(1, int(round(len(ids) * settings.masked_lm_prob))),
    )
    masked = list(ids)
    chosen: list[int] = []
    for places in candidates:
        if len(chosen) >= wanted:
            break
        if len(chosen) + len(places) > wanted:
            continue
        for place in places:
            if rng.random() < 0.8:
                masked[place] = vocabulary.mask_id
            elif rng.random() >= 0.5:
                masked[place] = rng.randint(0, vocabulary.size - 1)
            chosen.append(place)
    chosen.sort()
    return masked, chosen, [ids[place] for place in chosen]


def to_arrays(
    instances: list[Instance], settings: Settings
) -> dict[str, np.ndarray]:
    """Pads instances to the arrays of `features.pretraining_schema`.

    Returns:
        name -> `int64` or `float32 [N, length]`.
    """
    rows: dict[str, list[list]] = {
        features.INPUT_IDS: [x.ids for x in instances],
        features.INPUT_MASK: [[1] * len(x.ids) for x in instances],
        features.SEGMENT_IDS: [x.segment_ids for x in instances],
        features.MASKED_LM_POSITIONS: [
            x.masked_lm_positions for x in instances
        ],
        features.MASKED_LM_IDS: [x.masked_lm_ids for x in instances],
        features.MASKED_LM_WEIGHTS: [
            [1.0] * len(x.masked_lm_ids) for x in instances
        ],
        features.NEXT_SENTENCE_LABELS: [
            [int(x.is_random_next)] for x in instances
        ],
    }
    schema = features.pretraining_schema(
        settings.max_seq_length, settings.max_predictions_per_seq
    )
    return {
        name: sequences.pad_rows(rows[name], length, np.dtype(kind))
        for name, (kind, length) in schema.items()
    }


def _random_next(
    documents: list[Document],
    index: int,
    target_length: int,
    rng: random.Random,
) -> list[int]:
    """Sentences from a random place of another document."""
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
