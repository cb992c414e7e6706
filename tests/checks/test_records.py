"""Tokens of records, and whether they look like text."""

import numpy as np
import pytest

from checks import records
from checks.record_statistics import Statistics
from data import features
from data.records import encoding
from tests.helpers import pretraining_files, small

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]"]
CASED = {t: i for i, t in enumerate([*TOKENS, "the", "The", "."])}
LOWER = {t: i for i, t in enumerate([*TOKENS, "the", "##s", "."])}


def judge(vocab, do_lower_case=None, **targets):
    """Findings in records with these counts of masked tokens."""
    counts = np.zeros(len(vocab), np.int64)
    for token, count in targets.items():
        counts[vocab[token]] = count
    found = records.check_tokens(
        Statistics({}, counts, True, {}), vocab, "r.tfrecord", do_lower_case
    )
    return [(x.level, x.message.removeprefix("r.tfrecord: ")) for x in found]


def test_text_of_the_vocabulary_is_fine():
    assert judge(LOWER, **{"the": 900, ".": 1100, "[UNK]": 7}) == [
        ("fine", "most frequent tokens: . the [UNK]")
    ]
    (found,) = judge(CASED, **{"the": 900, "The": 100, ".": 1000})
    assert found == ("fine", "most frequent tokens: . the The")


def test_tokens_that_do_not_occur_in_text():
    _, (level, message) = judge(LOWER, **{"the": 990, "[unused1]": 10})
    assert level == "suspicious"
    assert message == (
        "1.0% of the tokens are [unused1] or similar, which do not occur in "
        "text; do the records belong to this vocabulary?"
    )


def test_text_without_capitals_in_a_cased_vocabulary():
    _, (level, message) = judge(CASED, **{"the": 999, "The": 1})
    assert level == "suspicious"
    assert message.startswith(
        "0.10% of the tokens have a capital letter, although the vocabulary "
    )
    assert len(judge(CASED, the=999)) == 1  # too few tokens
    # Text of a script that has no capital letters, left as it was.
    assert len(judge(CASED, False, **{"the": 999, "The": 1})) == 1


def test_the_loss_of_a_network_that_knows_only_frequencies():
    targets = np.array([0, 50, 25, 25])
    loss = records.unigram_loss(Statistics({}, targets, True, {}))
    assert loss == pytest.approx(1.5 * np.log(2))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({features.MASKED_LM_WEIGHTS: 0}, "no token is masked"),
        ({features.INPUT_MASK: 0}, "input_mask is 0 everywhere"),
        ({}, "next_sentence_weights is 0 everywhere"),
    ],
)
def test_records_in_which_nothing_counts(tmp_path, changed, message):
    path = str(tmp_path / "a.tfrecord")
    batch = {
        **small.batch(1, 5),
        features.MASKED_LM_WEIGHTS: np.ones([5, small.P]),
    }
    arrays = {}
    schema = features.packed_schema(small.S, small.P, 2)
    for name, (kind, length) in schema.items():
        values = np.zeros([5, length])
        if name != features.NEXT_SENTENCE_LABELS and name in batch:
            values[:] = batch[name]
        values[:] = changed.get(name, values)
        arrays[name] = values.astype("i8" if kind == "int64" else "f4")
    pretraining_files.write_shard(path, encoding.encode_examples(arrays))
    found = records.scan([path], None, None).findings
    assert f"{path}: {message}; make the records again" in [
        x.message for x in found if x.level == "wrong"
    ]


def test_a_manifest_that_counts_no_sentence_is_not_divided_by(tmp_path):
    path = tmp_path / "a.tfrecord"
    statistics = {"documents": 3, "sentences": 0}
    pretraining_files.write_records(path, 5, statistics=statistics)
    found = records.scan([str(path)], None, None).findings
    assert any("5 records, 5 pairs" in x.message for x in found)
