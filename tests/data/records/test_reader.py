"""Reading: each epoch is every record once, from any step on."""

import numpy as np
import pytest
import tensorflow as tf

from bert.data import feature_names
from bert.data.records import encoding, reader

S, P = 11, 3
SCHEMA = feature_names.pretraining_schema(S, P)


def arrays(numbers):
    """Records that hold their number in every feature."""
    return {
        name: np.tile(np.array(numbers)[:, None], [1, length]).astype(kind)
        for name, (kind, length) in SCHEMA.items()
    }


def write(path, serialized):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in serialized:
            writer.write(record)
    return str(path)


def shards(folder, sizes):
    """Files with these numbers of records, numbered over all files."""
    first = np.cumsum([0, *sizes])
    return [
        write(
            folder / f"{i}.tfrecord",
            encoding.encode_examples(arrays(range(start, start + size)))
            if size
            else [],
        )
        for i, (start, size) in enumerate(zip(first, sizes))
    ]


def take(dataset, batches):
    return list(dataset.take(batches).as_numpy_iterator())


def numbers(batches):
    """Row numbers; every feature of a row must agree."""
    found = []
    for batch in batches:
        for name, (_, length) in SCHEMA.items():
            assert batch[name].shape[1] == length
            assert (batch[name] == batch["input_ids"][:, :1]).all()
        found += batch["input_ids"][:, 0].tolist()
    return found


def train(files, count, batch_size=5, seed=3, step=0):
    return reader.training_batches(files, count, SCHEMA, batch_size, seed, step)


def test_the_records_of_a_step_are_reported(tmp_path):
    files = shards(tmp_path, [11, 7, 5])
    first = [0, 11, 18]  # of each file, numbered over all files
    for step, batch in enumerate(take(train(files, 23), 7), 1):
        report = reader.report_records(files, 23, 5, 3, step)
        named = []
        for part in report.split("; "):
            path, _, found = part.rpartition(": ")
            start = first[files.index(path)]
            named += [start + int(number) for number in found.split(", ")]
        assert sorted(named) == sorted(batch["input_ids"][:, 0].tolist())


@pytest.mark.parametrize("buffer", [3, 4096])
@pytest.mark.parametrize(
    "sizes, batch_size",
    [
        ([23], 5),
        ([11, 7, 5], 5),
        ([1, 0, 7, 2, 5, 3, 5], 7),
        ([7], 17),  # a batch longer than two epochs
    ],
)
def test_an_epoch_is_every_record_once(
    tmp_path, monkeypatch, sizes, batch_size, buffer
):
    monkeypatch.setattr(reader, "_SHUFFLED_RECORDS", buffer)
    files, count = shards(tmp_path, sizes), sum(sizes)
    batches = -(-5 * count // batch_size)
    rows = numbers(take(train(files, count, batch_size), batches))
    assert len(rows) == batches * batch_size
    epochs = [rows[i * count : (i + 1) * count] for i in range(5)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(count))] * 5
    assert len({tuple(epoch) for epoch in epochs}) == 5  # orders differ


def equal(batches, others):
    assert len(batches) == len(others)
    for batch, other in zip(batches, others, strict=True):
        assert batch.keys() == other.keys()
        for name in batch:
            np.testing.assert_array_equal(batch[name], other[name])


@pytest.mark.parametrize("step", [1, 4, 5, 9, 13, 14, 23])
def test_a_later_start_is_the_same_without_the_first_batches(tmp_path, step):
    # 23 rows in batches of 5: epochs begin within batches 0, 4, 9, 13 and 18,
    # and with batch 23.
    files = shards(tmp_path, [11, 7, 5])
    everything = take(train(files, 23), 30)
    equal(take(train(files, 23, step=step), 30 - step), everything[step:])


def test_workers_read_their_parts_of_each_batch(tmp_path):
    files = shards(tmp_path, [11, 7, 5])
    whole = take(train(files, 23, batch_size=6, step=2), 9)
    parts = []
    for worker in range(3):
        made = reader.training_batches(files, 23, SCHEMA, 6, 3, 2, (worker, 3))
        sizes = {spec.shape[0] for spec in made.element_spec.values()}
        assert sizes == {2}
        parts.append(take(made, 9))
    together = [
        {name: np.concatenate([x[name] for x in some]) for name in some[0]}
        for some in zip(*parts, strict=True)
    ]
    equal(together, whole)


def test_a_far_start_takes_no_reading(tmp_path):
    files = shards(tmp_path, [11, 7, 5])
    step = 23 * 10**9
    rows = numbers(take(train(files, 23, step=step), 23))
    assert sorted(rows) == sorted([*range(23)] * 5)


def test_the_order_depends_on_the_seed_alone(tmp_path):
    files = shards(tmp_path, [11, 7, 5])
    first = numbers(take(train(files, 23), 23))
    assert numbers(take(train(files, 23), 23)) == first
    assert numbers(take(train(files, 23, seed=4), 23)) != first
    # Not the neighbour's order, an epoch later.
    assert numbers(take(train(files, 23, seed=4), 4)) not in (
        first[start : start + 20] for start in range(0, 115, 23)
    )


@pytest.mark.parametrize("seed", [0, -7, 2**31, 2**63 - 1])
def test_any_seed_gives_an_order(tmp_path, seed):
    files = shards(tmp_path, [11, 7, 5])
    rows = numbers(take(train(files, 23, 23, seed=seed), 1))
    assert sorted(rows) == [*range(23)] != rows


def test_files_are_mixed(tmp_path):
    files = shards(tmp_path, [31, 31])
    rows = numbers(take(train(files, 62, batch_size=31), 1))
    assert 5 < sum(row < 31 for row in rows) < 26


@pytest.mark.parametrize("kind", ["training", "evaluation"])
def test_batches_are_static_int32_and_float32(tmp_path, kind):
    files = shards(tmp_path, [11])
    dataset = (
        train(files, 11)
        if kind == "training"
        else reader.evaluation_batches(files, SCHEMA, 5, 7)
    )
    assert dataset.element_spec == {
        "input_ids": tf.TensorSpec([5, 11], tf.int32),
        "input_mask": tf.TensorSpec([5, 11], tf.int32),
        "segment_ids": tf.TensorSpec([5, 11], tf.int32),
        "masked_lm_positions": tf.TensorSpec([5, 3], tf.int32),
        "masked_lm_ids": tf.TensorSpec([5, 3], tf.int32),
        "masked_lm_weights": tf.TensorSpec([5, 3], tf.float32),
        "next_sentence_labels": tf.TensorSpec([5, 1], tf.int32),
        "is_real_example": tf.TensorSpec([5], tf.float32),
    }
    assert dataset.options().autotune.enabled is False
    (batch,) = take(dataset, 1)
    assert batch["is_real_example"].tolist() == [1, 1, 1, 1, 1]


def evaluate(files, batch_size, most=97):
    dataset = reader.evaluation_batches(files, SCHEMA, batch_size, most)
    return list(dataset.as_numpy_iterator())


def test_evaluation_reads_files_in_order_and_fills_the_last_batch(tmp_path):
    files = shards(tmp_path, [7, 0, 4, 2])
    batches = evaluate(files, 5)
    assert numbers(batches) == [*range(13), 0, 0]
    assert [batch["is_real_example"].tolist() for batch in batches] == [
        [1, 1, 1, 1, 1],
        [1, 1, 1, 1, 1],
        [1, 1, 1, 0, 0],
    ]
    back = numbers(evaluate(files[::-1], 13))
    assert back == [11, 12, 7, 8, 9, 10, *range(7)]


@pytest.mark.parametrize(
    "most, expected", [(1, 5), (2, 10), (3, 13), (4, 13), (97, 13)]
)
def test_evaluation_takes_at_most_max_batches(tmp_path, most, expected):
    batches = evaluate(shards(tmp_path, [7, 6]), 5, most)
    assert sum(batch["is_real_example"].sum() for batch in batches) == expected
    assert len(batches) == min(most, 3)
