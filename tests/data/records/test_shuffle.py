"""Frames of records, and the shuffle of two levels."""

import hashlib
import io
import itertools
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from bert.data.records import frames, shuffle
from bert.data.records.shard_check import ShardEntry


def tf_frames(path, records):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return path.read_bytes()


@pytest.mark.parametrize("lengths", [[], [0], [7, 7], [5, 0, 300, 5]])
def test_frames_are_those_of_tensorflow(tmp_path, lengths):
    rng = np.random.default_rng(3)
    records = [rng.bytes(length) for length in lengths]
    found = frames.join(records, b"before")
    assert found == b"before" + tf_frames(tmp_path / "a", records)
    assert len(found) == 6 + sum(frames.OVERHEAD + x for x in lengths)


def make_parts(folder, parts, shards):
    """Writes parts; returns their names and paths."""
    found = []
    for number, records in enumerate(parts):
        path = folder / f"part-{number}"
        with open(path, "wb") as file:
            shuffle.write_portions(
                file, shuffle.distribute(records, shards, f"seed/{number}")
            )
        found.append((f"{number}.0", str(path)))
    return found


def read(content, folder):
    path = folder / "shard"
    path.write_bytes(content)
    return [record.numpy() for record in tf.data.TFRecordDataset(str(path))]


def make_shards(folder, parts, shards, key="key"):
    sources = make_parts(folder, parts, shards)
    found = []
    for number in range(shards):
        portions = [shuffle.open_portion(*x, number) for x in sources]
        file = io.BytesIO()
        entry = shuffle.write_shard(portions, f"{key}/{number}", file)
        content = file.getvalue()
        records = read(content, folder)
        sha256 = hashlib.sha256(content).hexdigest()
        assert entry == ShardEntry(len(records), len(content), sha256)
        found.append(records)
    return found


def some_records(parts=5, count=97):
    return [
        [f"{part}/{i}".encode() * (1 + 7 * (i % 3)) for i in range(count)]
        for part in range(parts)
    ]


@pytest.mark.parametrize("bucket", [1 << 30, 1000])
def test_every_record_is_in_one_shard(tmp_path, monkeypatch, bucket):
    monkeypatch.setattr(shuffle, "BUCKET_BYTES", bucket)
    parts = some_records()
    shards = make_shards(tmp_path, parts, 3)
    assert sorted(itertools.chain(*shards)) == sorted(itertools.chain(*parts))
    assert make_shards(tmp_path, parts, 3) == shards
    assert make_shards(tmp_path, parts, 3, "other") != shards
    sizes = [len(shard) for shard in shards]
    assert sum(sizes) == 485
    assert max(sizes) - min(sizes) <= len(parts)
    for shard in shards:
        for number in range(5):
            mine = [x for x in shard if x.startswith(b"%d/" % number)]
            assert len(mine) in (32, 33)
        changes = sum(a[:2] != b[:2] for a, b in itertools.pairwise(shard))
        # Of some 161 pairs of neighbours 80 % are of two parts.
        assert abs(changes - 0.8 * len(shard)) < 5 * (0.16 * len(shard)) ** 0.5


def test_parts_and_shards_may_be_empty(tmp_path):
    assert make_shards(tmp_path, [[], [b"x"], []], 2) in (
        [[b"x"], []],
        [[], [b"x"]],
    )
    assert make_shards(tmp_path, [[]], 1) == [[]]


@pytest.mark.parametrize("bucket", [1 << 30, 40])
def test_every_order_is_as_probable(tmp_path, monkeypatch, bucket):
    """In one bucket and in several, whose sizes are random too."""
    monkeypatch.setattr(shuffle, "BUCKET_BYTES", bucket)
    counts, trials = Counter(), 600
    for trial in range(trials):
        key = f"{trial}"
        portions = shuffle.distribute([b"a", b"b", b"c", b"d"], 1, key)
        path = tmp_path / "part"
        with open(path, "wb") as file:
            shuffle.write_portions(file, portions)
        file = io.BytesIO()
        shuffle.write_shard(
            [shuffle.open_portion("0", str(path), 0)], key, file
        )
        content = file.getvalue()
        counts[bytes(content[12 + 17 * i] for i in range(4))] += 1
    assert len(counts) == 24
    deviation = (trials / 24 * (1 - 1 / 24)) ** 0.5
    assert all(abs(n - trials / 24) < 5 * deviation for n in counts.values())


def test_each_bucket_has_an_order_of_its_own(tmp_path, monkeypatch):
    keys, permutation = [], shuffle.permutation
    monkeypatch.setattr(
        shuffle,
        "permutation",
        lambda key, count: keys.append(key) or permutation(key, count),
    )
    monkeypatch.setattr(shuffle, "BUCKET_BYTES", 1000)
    make_shards(tmp_path, some_records(), 3)
    assert len(keys) == len(set(keys)) > 3 * 2


def test_shards_get_the_rest_at_random():
    counts = Counter()
    for trial in range(900):
        portions = shuffle.distribute([b"a"] * 4, 3, f"{trial}")
        sizes = [int.from_bytes(portion[:8], "little") for portion in portions]
        assert sorted(sizes) == [1, 1, 2]
        counts[sizes.index(2)] += 1
    assert all(abs(n - 300) < 5 * 200**0.5 for n in counts.values())
