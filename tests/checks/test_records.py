"""Records in which nothing counts, and ids that no vocabulary has."""

import numpy as np
import pytest

from bert.checks import records
from bert.data import feature_names
from bert.data.records import encoding, writer
from bert.data.text.tokenizer import Tokenizer
from tests.helpers import pretraining_files, small


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({feature_names.MASKED_LM_WEIGHTS: 0}, "no token is masked"),
        ({feature_names.INPUT_MASK: 0}, "input_mask is 0 everywhere"),
        ({}, "next_sentence_weights is 0 everywhere"),
    ],
)
def test_records_in_which_nothing_counts(tmp_path, changed, message):
    path, vocab = str(tmp_path / "a.tfrecord"), tmp_path / "vocab.txt"
    batch = {
        **small.batch(1, 5),
        feature_names.MASKED_LM_WEIGHTS: np.ones([5, small.P]),
    }
    arrays = {}
    schema = feature_names.packed_schema(small.S, small.P, 2)
    for name, (kind, length) in schema.items():
        values = np.zeros([5, length])
        if name != feature_names.NEXT_SENTENCE_LABELS and name in batch:
            values[:] = batch[name]
        values[:] = changed.get(name, values)
        arrays[name] = values.astype("i8" if kind == "int64" else "f4")
    entry = pretraining_files.write_shard(
        path, encoding.encode_examples(arrays)
    )
    vocab.write_text("\n".join(pretraining_files.VOCABULARY))
    settings = {
        "max_seq_length": small.S,
        "max_predictions_per_seq": small.P,
        "vocab_size": small.V,
        "do_lower_case": True,
        "strip_accents": True,
        "pack_sequences": True,
        "max_sequences_per_row": 2,
    }
    writer.write_manifest(
        str(tmp_path), {"a.tfrecord": entry}, Tokenizer(str(vocab)), settings
    )
    found = records.scan(path, None, None).findings
    assert f"{path}: {message}; make the records again" in [
        x.message for x in found if x.level == "wrong"
    ]


def test_a_manifest_that_counts_no_sentence_is_not_divided_by(tmp_path):
    path = tmp_path / "a.tfrecord"
    statistics = {"documents": 3, "sentences": 0}
    pretraining_files.write_records(path, 5, statistics=statistics)
    found = records.scan(str(path), None, None).findings
    assert any("5 records, 5 pairs" in x.message for x in found)


def test_records_with_the_same_problem_are_counted(tmp_path):
    path = tmp_path / "a.tfrecord"
    for rows, end in ((1, ("", "")), (2, (" (", "and 1 more records)"))):
        pretraining_files.write_records(path, rows)
        found = records.scan(str(path), None, None).findings
        (line,) = (x.message for x in found if "start with [CLS]" in x.message)
        assert line.partition(";")[0].partition(" (")[1:] == end


def test_ids_are_below_the_size_of_the_config(tmp_path):
    path = tmp_path / "a.tfrecord"
    pretraining_files.write_records(path, 5)
    found = records.scan(str(path), None, 7).findings
    assert any("input_ids" in x.message for x in found if x.level == "wrong")
