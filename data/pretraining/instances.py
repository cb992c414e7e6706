"""Pre-training instances: sentence pairs of documents with masked tokens.

The algorithm of google-research/bert `create_pretraining_data.py`, on ids
instead of strings. It draws the same random numbers in the same order, so the
same documents and the same `random.Random` give the same instances.
"""

import dataclasses
import random

import numpy as np

from data import features, sequences
from data.pretraining import masking
from data.pretraining.settings import InstanceSettings

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
    vocabulary: masking.Vocabulary,
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
    vocabulary: masking.Vocabulary,
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
            a, b = sequences.truncate_pair_randomly(a, b, max_tokens, rng)
            ids, segment_ids = sequences.join_pair(
                a, b, vocabulary.cls_id, vocabulary.sep_id
            )
            masked, positions, labels = masking.mask_tokens(
                ids, settings, vocabulary, rng
            )
            instances.append(
                Instance(masked, segment_ids, is_random_next, positions, labels)
            )
            chunk = []
            length = 0
        i += 1
    return instances


def to_arrays(
    instances: list[Instance], settings: InstanceSettings
) -> dict[str, np.ndarray]:
    """Pads instances to the arrays of `features.pretraining_schema`.

    Returns:
        name -> int64 or float32 [N, length].
    """
    unpadded = [unpadded_features(instance) for instance in instances]
    schema = features.pretraining_schema(
        settings.max_seq_length, settings.max_predictions_per_seq
    )
    return {
        name: sequences.pad_rows(
            [values[name] for values in unpadded], length, np.dtype(kind)
        )
        for name, (kind, length) in schema.items()
    }


def unpadded_features(instance: Instance) -> dict[str, list]:
    """The features of an instance without padding."""
    return {
        features.INPUT_IDS: instance.ids,
        features.INPUT_MASK: [1] * len(instance.ids),
        features.SEGMENT_IDS: instance.segment_ids,
        features.MASKED_LM_POSITIONS: instance.masked_lm_positions,
        features.MASKED_LM_IDS: instance.masked_lm_ids,
        features.MASKED_LM_WEIGHTS: [1.0] * len(instance.masked_lm_ids),
        features.NEXT_SENTENCE_LABELS: [int(instance.is_random_next)],
    }


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
