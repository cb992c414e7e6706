"""The contents of records: each number in its range, each feature there."""

import numpy as np
import pytest

from bert.common.errors import UserError
from bert.data import feature_names
from bert.data.records import content_check, encoding
from bert.data.records.shards import Records, Shard
from tests.helpers import pretraining_files

S, P, V = 11, 3, 97
SCHEMA = feature_names.pretraining_schema(S, P)


def write(path, serialized):
    pretraining_files.write_shard(path, serialized)
    return str(path)


def check(path, schema=SCHEMA):
    return content_check.check_records(str(path), schema, V)


@pytest.mark.parametrize("size", [0, 1, 23, 1024, 1031])
def test_good_records_are_counted(tmp_path, size):
    serialized = encoding.encode_examples(valid(size)) if size else []
    assert check(write(tmp_path / "a.tfrecord", serialized)) == size


def valid(rows):
    """Rows whose every number is the largest that is allowed."""
    batch = {
        name: np.ones([rows, length], kind)
        for name, (kind, length) in SCHEMA.items()
    }
    batch["input_ids"][:], batch["masked_lm_ids"][:] = V - 1, 0
    batch["masked_lm_positions"][:] = S - 1
    return batch


def whole(folder, rows):
    path = folder / f"{rows}.tfrecord"
    return write(path, encoding.encode_examples(valid(rows)))


def message_of(path, schema=SCHEMA):
    with pytest.raises(UserError) as error:
        check(path, schema)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("input_ids", V),
        ("input_mask", 2),
        ("masked_lm_ids", V),
        ("masked_lm_positions", S),
        ("segment_ids", 2),
        ("next_sentence_labels", 2),
    ],
)
@pytest.mark.parametrize(("row", "bad"), [(0, -1), (17, 2**40), (1029, None)])
def test_a_number_out_of_range_names_its_record(
    tmp_path, row, bad, name, limit
):
    bad = limit if bad is None else bad
    batch = valid(1031)
    batch[name][row, -1] = bad
    path = write(tmp_path / "a.tfrecord", encoding.encode_examples(batch))
    assert message_of(path) == (
        f"record {row}: {name} has {bad}; expected 0 to {limit - 1}; "
        "pass the config and lengths that the records were made for"
    )


@pytest.mark.parametrize("bad", [np.nan, -1, 7])
def test_a_weight_out_of_range_names_its_record(tmp_path, bad):
    batch = valid(7)
    batch["masked_lm_weights"][3, -1] = bad
    path = write(tmp_path / "a.tfrecord", encoding.encode_examples(batch))
    assert message_of(path).startswith(
        f"record 3: masked_lm_weights has {float(bad)}; expected 0 to 1; "
    )


def test_records_without_a_masked_token_are_rejected(tmp_path):
    """Training would end with exit code 0 and learn nothing."""
    batch = valid(7)
    batch["masked_lm_weights"][:] = 0
    path = write(tmp_path / "a.tfrecord", encoding.encode_examples(batch))
    whole_one = Shard(whole(tmp_path, 7))
    for shards, message in (
        ((Shard(path),), f"{path}: no token is masked; make the records"),
        ((whole_one, Shard(path)), f"{path}: no token is masked; "),
    ):
        with pytest.raises(UserError, match=message):
            content_check.count_records(Records(shards, SCHEMA), V)
    assert content_check.count_records(Records((whole_one,), SCHEMA), V) == 7


def test_other_lengths_name_feature_and_flags(tmp_path):
    path = whole(tmp_path, 7)
    fix = (
        "; pass the --max_seq_length and --max_predictions_per_seq of the "
        "records"
    )
    assert message_of(path, feature_names.pretraining_schema(13, P)) == (
        f"record 0: input_ids has 11 values; expected 13{fix}"
    )
    assert message_of(path, feature_names.pretraining_schema(S, 2)) == (
        f"record 0: masked_lm_positions has 3 values; expected 2{fix}"
    )


def example_of(**changed):
    """A record with changed features; None leaves one out."""
    arrays = {**valid(1), **changed}
    kept = {name: x for name, x in arrays.items() if x is not None}
    return encoding.encode_examples(kept)[0]


@pytest.mark.parametrize("row", [0, 5, 1029])
@pytest.mark.parametrize(
    ("record", "message"),
    [
        (lambda: example_of(segment_ids=None), "no segment_ids; expected "),
        (
            lambda: example_of(input_mask=np.ones([1, S], np.float32)),
            "no input_mask; expected records of ",
        ),
        (lambda: b"\xff no protobuf", "not a tf.train.Example: "),
    ],
)
def test_records_of_another_kind_are_named(tmp_path, row, record, message):
    serialized = encoding.encode_examples(valid(7)) * 148
    serialized[row] = record()
    path = write(tmp_path / "a.tfrecord", serialized)
    assert message_of(path).startswith(f"record {row}: {message}")


@pytest.mark.parametrize("good", [0, 22, 1029])
def test_damage_reports_the_number_of_records_before_it(tmp_path, good):
    path = write(
        tmp_path / "a.tfrecord",
        encoding.encode_examples(valid(good)) if good else [],
    )
    with open(path, "ab") as file:
        file.write(b"neither length nor checksum")
    assert message_of(path).startswith(f"cannot be read after record {good}; ")
