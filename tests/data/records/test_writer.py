"""Writing of shards completely or not at all."""

import hashlib
import itertools
import os
import random
from collections import Counter

import pytest
import tensorflow as tf

from common.errors import UserError
from data.records import writer as records


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
