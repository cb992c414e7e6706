"""Encoding of records, and writing of shards completely or not at all."""

import hashlib
import itertools
import os
import random
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import UserError
from data.records import writer as records


def parsed(serialized):
    """A serialized example: name -> (kind, values)."""
    example = tf.train.Example.FromString(serialized)
    return {
        name: (
            feature.WhichOneof("kind"),
            list(getattr(feature, feature.WhichOneof("kind")).value),
        )
        for name, feature in example.features.feature.items()
    }


def test_examples_hold_what_was_encoded():
    arrays = {
        "input_ids": np.array([[5, 7, 0], [-1, 2**40, 3]], np.int64),
        "weights": np.array([[0.5, -1.0], [0.0, 3.25]], np.float32),
        "label": np.array([[1], [0]], np.int64),
    }
    encoded = records.encode_examples(arrays)
    assert [parsed(record) for record in encoded] == [
        {
            "input_ids": ("int64_list", [5, 7, 0]),
            "weights": ("float_list", [0.5, -1.0]),
            "label": ("int64_list", [1]),
        },
        {
            "input_ids": ("int64_list", [-1, 2**40, 3]),
            "weights": ("float_list", [0.0, 3.25]),
            "label": ("int64_list", [0]),
        },
    ]


@pytest.mark.parametrize("length", [1, 2, 131])
@pytest.mark.parametrize(
    "dtype, kind, field",
    [
        (np.int64, tf.train.Int64List, "int64_list"),
        (np.float32, tf.train.FloatList, "float_list"),
    ],
)
def test_bytes_are_those_of_protobuf(length, dtype, kind, field):
    array = np.arange(3 * length).reshape(3, length).astype(dtype)
    expected = []
    for row in array:
        feature = tf.train.Feature(**{field: kind(value=row)})
        example = tf.train.Example(
            features=tf.train.Features(feature={"ids": feature})
        )
        expected.append(example.SerializeToString(deterministic=True))
    assert records.encode_examples({"ids": array}) == expected


def test_features_are_in_the_order_given():
    one = np.ones([1, 1], np.int64)
    for names in (["b", "a", "c"], ["c", "b", "a"]):
        (record,) = records.encode_examples(dict.fromkeys(names, one))
        offsets = [record.index(name.encode()) for name in names]
        assert offsets == sorted(offsets)


@settings(deadline=None, max_examples=50, derandomize=True)
@given(
    st.lists(
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3),
        min_size=1,
        max_size=5,
    ),
    st.floats(width=32, allow_nan=False),
)
def test_any_number_survives(rows, number):
    arrays = {
        "ids": np.array(rows, np.int64),
        "weights": np.full([len(rows), 2], number, np.float32),
    }
    assert [parsed(r) for r in records.encode_examples(arrays)] == [
        {
            "ids": ("int64_list", row),
            "weights": ("float_list", [number, number]),
        }
        for row in rows
    ]


def content(path):
    return [record.numpy() for record in tf.data.TFRecordDataset(str(path))]


def paths(folder, count=2):
    return [str(folder / f"a.tfrecord-{i}-of-{count}") for i in range(count)]


def write_parts(writer, *parts):
    """Writes the parts; returns how many records each has."""
    for number, part in enumerate(parts):
        records.write_records(writer.part_path(number), part)
    return [len(part) for part in parts]


def test_shards_are_renamed_when_all_are_complete(tmp_path):
    folder = tmp_path / "new" / "folder"
    shards = paths(folder)
    writer = records.ShardWriter(shards)
    assert writer.folder == str(folder)
    write_parts(writer, [b"x", b"", b"z" * 97])
    assert os.listdir(folder) == [os.path.basename(writer.scratch)]
    assert os.path.basename(writer.scratch).startswith(".")
    assert "tfrecord" not in writer.scratch
    entries = writer.finish([3], 1)
    assert sorted(os.listdir(folder)) == sorted(map(os.path.basename, shards))
    assert content(shards[0]) == [b"x", b"z" * 97]
    assert content(shards[1]) == [b""]
    expected = {}
    for path, count in zip(shards, (2, 1), strict=True):
        with open(path, "rb") as file:
            raw = file.read()
        expected[os.path.basename(path)] = {
            "records": count,
            "bytes": len(raw),
            "sha256": hashlib.sha256(raw).hexdigest(),
        }
    assert entries == expected
    # A TFRecord spends 16 bytes beside the record.
    assert [x["bytes"] for x in entries.values()] == [2 * 16 + 98, 16]


def test_a_shard_may_stay_empty(tmp_path):
    shards = paths(tmp_path)
    writer = records.ShardWriter(shards)
    write_parts(writer, [b"x"])
    entries = writer.finish([1], 1)
    assert entries["a.tfrecord-1-of-2"]["records"] == 0
    assert content(shards[1]) == []


def test_parts_are_mixed_over_all_shards(tmp_path, monkeypatch):
    """Neighbours in a part are not neighbours in a shard."""
    monkeypatch.setattr(records, "_MERGE_BYTES", 1)  # chunks of 16 kB
    rows = {
        part: [f"{part}/{i}".encode() * (1 + 997 * (i % 3)) for i in range(97)]
        for part in range(5)
    }
    found = []
    for seed in (1, 1, 2):
        shards = paths(tmp_path, 3)
        writer = records.ShardWriter(shards)
        counts = write_parts(writer, *rows.values())
        writer.finish(counts, seed)
        found.append([content(path) for path in shards])
    assert found[0] == found[1] != found[2]
    assert [len(shard) for shard in found[0]] == [162, 162, 161]
    merged = [r for rs in itertools.zip_longest(*found[0]) for r in rs if r]
    for part, expected in rows.items():
        start = f"{part}/".encode()
        assert [r for r in merged if r.startswith(start)] == expected
    changes = sum(a[:2] != b[:2] for a, b in itertools.pairwise(merged))
    # Of 484 pairs of neighbours 80 % are of two parts; 8.9 deviates it.
    assert abs(changes - 484 * 0.8) < 5 * 8.9


def test_every_order_of_parts_is_as_probable():
    counts = Counter(
        tuple(records.draw_parts([3, 0, 2, 1], random.Random(seed)))
        for seed in range(6000)
    )
    assert len(counts) == 60  # 6! / (3! 2! 1!)
    deviation = (6000 / 60 * (1 - 1 / 60)) ** 0.5
    assert all(abs(n - 100) < 5 * deviation for n in counts.values())


def test_a_relative_path_is_written_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = records.ShardWriter(["a.tfrecord"])
    write_parts(writer, [b"x"])
    writer.finish([1], 1)
    assert content(tmp_path / "a.tfrecord") == [b"x"]


def test_an_earlier_output_stays_until_the_end(tmp_path):
    shards = paths(tmp_path)
    first = records.ShardWriter(shards)
    write_parts(first, [b"old"])
    first.finish([1], 1)
    killed = records.ShardWriter(shards)
    write_parts(killed, [b"new"])
    assert content(shards[0]) == [b"old"]
    last = records.ShardWriter(shards)
    write_parts(last, [b"newer"])
    last.finish([1], 1)
    assert content(shards[0]) == [b"newer"]


def test_the_next_run_removes_the_files_of_a_killed_one(tmp_path):
    shards = paths(tmp_path)
    killed = records.ShardWriter(shards)
    write_parts(killed, [b"lost"])
    with open(os.path.join(killed.scratch, "partition"), "w") as file:
        file.write("text")
    writer = records.ShardWriter(shards)
    assert writer.scratch == killed.scratch
    assert not os.path.exists(os.path.join(writer.scratch, "partition"))
    write_parts(writer, [b"kept"])
    writer.finish([1], 1)
    assert content(shards[0]) == [b"kept"]
    assert sorted(os.listdir(tmp_path)) == sorted(map(os.path.basename, shards))


def test_runs_for_other_paths_do_not_meet(tmp_path):
    one = records.ShardWriter([str(tmp_path / "a.tfrecord")])
    other = records.ShardWriter([str(tmp_path / "b.tfrecord")])
    write_parts(one, [b"a"])
    write_parts(other, [b"b"])
    other.finish([1], 1)
    one.finish([1], 1)
    assert content(tmp_path / "a.tfrecord") == [b"a"]
    assert content(tmp_path / "b.tfrecord") == [b"b"]
    assert sorted(os.listdir(tmp_path)) == ["a.tfrecord", "b.tfrecord"]


@pytest.mark.parametrize("below", [".", "deeper"])
def test_a_file_instead_of_the_folder_is_a_user_error(tmp_path, below):
    (tmp_path / "folder").write_text("a file")
    folder = tmp_path / "folder" / below
    with pytest.raises(UserError) as error:
        records.ShardWriter(paths(folder))
    message = str(error.value)
    assert message.startswith(f"{tmp_path}/folder")
    assert ": cannot be written: " in message
    assert message.endswith(
        "; check the path, its permissions and the free space"
    )
