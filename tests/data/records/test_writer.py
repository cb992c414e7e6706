"""Writing of shards completely or not at all, by one run at a time."""

import hashlib
import os

import pytest
import tensorflow as tf

from common import storage
from common.errors import StorageError, UserError
from common.processes import KilledProcess
from data.records import shuffle
from data.records import writer as records


def content(path):
    return [record.numpy() for record in tf.data.TFRecordDataset(str(path))]


def paths(folder, count=2):
    return [
        str(folder / f"a.tfrecord-{i:05d}-of-{count:05d}") for i in range(count)
    ]


def fill(writer, *shards):
    """Writes the shards; returns their entries."""
    return [
        records.write_records(writer.shard_path(number), shard)
        for number, shard in enumerate(shards)
    ]


def finish_part(writer, number=3):
    with open(f"{writer.part_path(number)}.json", "w") as file:
        file.write("{}")


def test_shards_are_renamed_when_all_are_complete(tmp_path):
    folder = tmp_path / "new" / "folder"
    shards = paths(folder)
    with records.ShardWriter(shards) as writer:
        assert writer.folder == str(folder)
        entries = fill(writer, [b"x", b"z" * 97], [b""])
        inside = sorted(os.listdir(folder))
        assert inside == [".a.lock", os.path.basename(writer.scratch)]
        assert inside[1].startswith(".partial-")
        listed = writer.finish(entries)
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
    assert listed == expected
    # A TFRecord spends 16 bytes beside the record.
    assert [x["bytes"] for x in listed.values()] == [2 * 16 + 98, 16]


def test_a_shard_is_written_from_its_portions(tmp_path):
    rows = [b"%d" % i for i in range(97)]
    part = str(tmp_path / "part")
    shuffle.write_part(part, shuffle.distribute(rows, 2, "key"))
    found = []
    for number in range(2):
        path = str(tmp_path / f"shard-{number}")
        entry = records.write_shard(path, number, [("0", part)], "key")
        found += content(path)
        assert entry["records"] == len(content(path))
    assert sorted(found) == sorted(rows) != found
    names = ["part", *(f"shard-{i}{x}" for i in "01" for x in ("", ".json"))]
    assert sorted(os.listdir(tmp_path)) == names


def test_a_relative_path_is_written_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with records.ShardWriter(["a.tfrecord"]) as writer:
        writer.finish(fill(writer, [b"x"]))
    assert content(tmp_path / "a.tfrecord") == [b"x"]


def test_an_earlier_output_stays_until_the_end(tmp_path):
    shards = paths(tmp_path, 1)
    with records.ShardWriter(shards) as first:
        first.finish(fill(first, [b"old"]))
    with records.ShardWriter(shards) as last:
        entries = fill(last, [b"new"])
        assert content(shards[0]) == [b"old"]
        last.finish(entries)
    assert content(shards[0]) == [b"new"]


@pytest.mark.parametrize("error", [ValueError, OSError, UserError])
def test_an_error_leaves_nothing(tmp_path, error):
    (tmp_path / "old").mkdir()
    for name in ("old", "new"):
        with (
            pytest.raises(error),
            records.ShardWriter(paths(tmp_path / name)) as writer,
        ):
            finish_part(writer)
            raise error("")
    assert os.listdir(tmp_path) == ["old"]
    assert os.listdir(tmp_path / "old") == []


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, KilledProcess, StorageError]
)
def test_what_a_stopped_run_has_finished_is_kept(tmp_path, capsys, error):
    shards = paths(tmp_path)
    with pytest.raises(error), records.ShardWriter(shards, "one") as stopped:
        finish_part(stopped)
        raise error("")
    assert "1 finished partitions are kept in " in capsys.readouterr().err
    assert os.listdir(tmp_path) == [os.path.basename(stopped.scratch)]
    with records.ShardWriter(shards, "one") as same:
        assert same.scratch == stopped.scratch
        assert same.finished_parts() == {3}
    assert os.listdir(tmp_path) == []


def test_another_run_removes_what_a_killed_one_left_on_a_store():
    folder = "ram://killed"
    shards = [f"{folder}/a.tfrecord"]
    killed = records.ShardWriter(shards, "one").staging
    storage.make_folder(killed)
    storage.write_whole(f"{killed}/a.tfrecord", "x")
    kept = [f"{folder}/.partial-of-others", f"{folder}/b.tfrecord"]
    for path in kept:
        storage.write_whole(path, "x")
    with records.ShardWriter(shards, "two") as writer:
        assert storage.list_folder(folder) == sorted(
            os.path.basename(x) for x in (writer.staging, *kept)
        )


def test_another_run_removes_what_a_killed_one_left(tmp_path):
    shards = paths(tmp_path)
    killed = records.ShardWriter(shards, "one")
    os.makedirs(killed.scratch)
    finish_part(killed)
    neighbour = records.ShardWriter([str(tmp_path / "b.tfrecord")], "one")
    os.makedirs(neighbour.scratch)
    with records.ShardWriter(shards, "two") as writer:
        assert writer.scratch != killed.scratch
        assert not os.path.exists(killed.scratch)
        assert writer.finished_parts() == set()
    assert os.listdir(tmp_path) == [os.path.basename(neighbour.scratch)]


def test_runs_for_other_paths_do_not_meet(tmp_path):
    with (
        records.ShardWriter([str(tmp_path / "a.tfrecord")]) as one,
        records.ShardWriter([str(tmp_path / "b.tfrecord")]) as other,
    ):
        entries = fill(one, [b"a"]), fill(other, [b"b"])
        other.finish(entries[1])
        one.finish(entries[0])
    assert content(tmp_path / "a.tfrecord") == [b"a"]
    assert content(tmp_path / "b.tfrecord") == [b"b"]
    assert sorted(os.listdir(tmp_path)) == ["a.tfrecord", "b.tfrecord"]


@pytest.mark.parametrize(
    "names",
    [
        ["a.tfrecord"],
        ["a.tfrecord-0-of-1"],
        ["x.tfrecord", "a.tfrecord-1-of-3"],
    ],
)
def test_a_second_run_into_the_same_outputs_is_told_who_is_there(
    tmp_path, names
):
    with records.ShardWriter(paths(tmp_path)) as writer:
        finish_part(writer)
        with (
            pytest.raises(UserError) as error,
            records.ShardWriter([str(tmp_path / x) for x in names], "other"),
        ):
            raise AssertionError("the lock is not held")
        assert str(error.value).startswith(
            f"{tmp_path}/a: in use by process {os.getpid()} on "
        )
        assert writer.finished_parts() == {3}


@pytest.mark.parametrize("below", [".", "deeper"])
def test_a_file_instead_of_the_folder_is_a_user_error(tmp_path, below):
    (tmp_path / "folder").write_text("a file")
    folder = tmp_path / "folder" / below
    with (
        pytest.raises(UserError) as error,
        records.ShardWriter(paths(folder)),
    ):
        pass
    message = str(error.value)
    assert message.startswith(f"{tmp_path}/folder")
    assert ": cannot be written: " in message
    assert message.endswith(
        "; check the path, its permissions and the free space"
    )
