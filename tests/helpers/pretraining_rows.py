"""Pre-training rows of documents, as arrays and as single instances."""

import itertools

import numpy as np

from bert.data import feature_names
from bert.data.pretraining import masking, packing
from bert.data.pretraining import rows as rows_module
from bert.data.pretraining.instances import TokenizedDocuments
from bert.data.pretraining.settings import InstanceSettings
from tests.helpers.original_instances import Instance

PAD, CLS, SEP, MASK = 0, 2, 3, 4
FIRST = 5  # ids below are special tokens


def padded(rows, length: int, dtype) -> np.ndarray:
    """Lists of numbers as an array, with zeros after each."""
    values = [[*x, *[0] * (length - len(x))] for x in rows]
    return np.array(values, dtype).reshape(len(rows), length)


def vocabulary(size, continuation_ids=()) -> masking.Vocabulary:
    """A vocabulary of `size` tokens with the special tokens above."""
    continues = np.isin(np.arange(size), list(continuation_ids))
    return masking.Vocabulary(size, CLS, SEP, MASK, continues)


def numbered(lengths: list[list[int]]) -> list[list[list[int]]]:
    """Documents in which every token has an id of its own, counted up.

    [[2, 1], [3]]  ->  [[[5, 6], [7]], [[8, 9, 10]]]
    """
    count = iter(range(FIRST, 1 << 30))
    return [
        [[next(count) for _ in range(length)] for length in document]
        for document in lengths
    ]


def tokenized(documents: list[list[list[int]]]) -> TokenizedDocuments:
    """Joins documents, which are lists of sentences of ids."""
    sentences = [sentence for x in documents for sentence in x]
    return TokenizedDocuments(
        np.array(list(itertools.chain.from_iterable(sentences)), np.int32),
        np.cumsum([len(x) for x in sentences], dtype=np.int64),
        np.cumsum([len(x) for x in documents], dtype=np.int64),
    )


def make_rows(
    documents: list[list[list[int]]],
    settings: InstanceSettings,
    known: masking.Vocabulary,
    number: int = 0,
    partition: int = 0,
    share: float = 1.0,
) -> dict[str, np.ndarray]:
    """The rows of `rows.make_rows` in one block, of the schema's types."""
    length, most = settings.max_seq_length, settings.max_predictions_per_seq
    schema = feature_names.pretraining_schema(length, most)
    if settings.pack_sequences:
        count = packing.max_sequences_per_row(length)
        schema = feature_names.packed_schema(length, most, count)
    blocks = list(
        rows_module.make_rows(
            tokenized(documents),
            number,
            partition,
            settings,
            known,
            share,
        )
    )
    assert all(block.keys() == schema.keys() for block in blocks)
    rows = {
        name: np.concatenate([block[name] for block in blocks]).astype(kind)
        for name, (kind, _) in schema.items()
    }
    for name, (_, length) in schema.items():
        assert rows[name].shape[1] == length
    return rows


def of_instances(
    made: list[Instance], settings: InstanceSettings
) -> dict[str, np.ndarray]:
    """Arrays of instances of the original algorithm."""
    unpadded = {
        feature_names.INPUT_IDS: [x.ids for x in made],
        feature_names.INPUT_MASK: [[1] * len(x.ids) for x in made],
        feature_names.SEGMENT_IDS: [x.segment_ids for x in made],
        feature_names.MASKED_LM_POSITIONS: [
            x.masked_lm_positions for x in made
        ],
        feature_names.MASKED_LM_IDS: [x.masked_lm_ids for x in made],
        feature_names.MASKED_LM_WEIGHTS: [
            [1.0] * len(x.masked_lm_ids) for x in made
        ],
        feature_names.NEXT_SENTENCE_LABELS: [
            [int(x.is_random_next)] for x in made
        ],
    }
    schema = feature_names.pretraining_schema(
        settings.max_seq_length, settings.max_predictions_per_seq
    )
    return {
        name: padded(unpadded[name], length, kind)
        for name, (kind, length) in schema.items()
    }


def to_instances(rows: dict[str, np.ndarray]) -> list[Instance]:
    """The instances of rows, packed or not, in their order."""
    numbers = rows.get(
        feature_names.SEQUENCE_IDS, rows[feature_names.INPUT_MASK]
    )
    found = []
    for row, number in enumerate(numbers):
        real = rows[feature_names.MASKED_LM_WEIGHTS][row] > 0
        positions = rows[feature_names.MASKED_LM_POSITIONS][row][real]
        labels = rows[feature_names.MASKED_LM_IDS][row][real]
        for k in range(1, number.max() + 1):
            (where,) = (number == k).nonzero()
            inside = number[positions] == k
            label = rows[feature_names.NEXT_SENTENCE_LABELS][row][k - 1]
            found.append(
                Instance(
                    rows[feature_names.INPUT_IDS][row][where].tolist(),
                    rows[feature_names.SEGMENT_IDS][row][where].tolist(),
                    bool(label),
                    (positions[inside] - where[0]).tolist(),
                    labels[inside].tolist(),
                )
            )
    return found


def make_instances(*args, **named) -> list[Instance]:
    """The instances of `make_rows`."""
    return to_instances(make_rows(*args, **named))


def unmasked(instance: Instance) -> tuple[list[int], list[int]]:
    """Its two segments before masking; asserts that the sequence is valid."""
    ids = list(instance.ids)
    for position, label in zip(
        instance.masked_lm_positions, instance.masked_lm_ids, strict=True
    ):
        ids[position] = label
    middle = instance.segment_ids.index(1)
    a, b = ids[1 : middle - 1], ids[middle:-1]
    assert ids == [CLS, *a, SEP, *b, SEP]
    assert instance.segment_ids == [0] * middle + [1] * (len(b) + 1)
    return a, b
