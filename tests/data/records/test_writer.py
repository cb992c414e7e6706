"""Writing of shards completely or not at all, by one run at a time."""

import os
import shutil

import pytest

from bert.common import atomic, storage
from bert.common.errors import StorageError, UserError
from bert.common.jobs import scratch as scratch_lib
from bert.common.processes import KilledProcess
from bert.data.records import writer


def paths(folder, count=2):
    return [
        str(folder / f"a.tfrecord-{i:05d}-of-{count:05d}") for i in range(count)
    ]


def scratch(shards, identity="one", is_shared=False):
    folder = os.path.dirname(storage.absolute(shards[0]))
    names = writer.run_names(shards)
    return scratch_lib.folder_of(folder, names, identity, is_shared)


def claim(shards, scratch):
    folder = os.path.dirname(storage.absolute(shards[0]))
    return scratch_lib.claim(folder, writer.run_names(shards), scratch)


def finish_part(folder, number=3):
    with open(f"{folder}/part-{number:05d}.json", "w") as file:
        file.write("{}")


def test_unfinished_files_are_hidden_in_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shards = paths(tmp_path / "new" / "folder")
    folder = scratch(shards)
    outputs = str(tmp_path / "new" / "folder")
    with claim(shards, folder):
        inside = sorted(os.listdir(outputs))
        assert inside == [".a.lock", os.path.basename(folder)]
        assert inside[1].startswith(".partial-")
        open(shards[0], "w").close()
    assert os.listdir(outputs) == [os.path.basename(shards[0])]
    with claim(["b.tfrecord"], scratch(["b.tfrecord"])):
        assert ".b.lock" in os.listdir(tmp_path)


def test_a_run_that_is_killed_while_it_removes_its_files(tmp_path, monkeypatch):
    """It leaves no mark of a part whose file is gone."""
    shards, kept = paths(tmp_path), []
    folder = scratch(shards)
    rmtree = shutil.rmtree

    def remove(path):
        kept.append(os.path.exists(f"{folder}/part-00003.json"))
        rmtree(path)

    with claim(shards, folder):
        finish_part(folder)
        monkeypatch.setattr("shutil.rmtree", remove)
        os.makedirs(f"{folder}-removed")  # left by a killed run
    assert kept[1:] == [False] and not os.listdir(tmp_path)


@pytest.mark.parametrize("error", [ValueError, OSError, UserError])
def test_an_error_leaves_nothing(tmp_path, error):
    (tmp_path / "old").mkdir()
    for name in ("old", "new"):
        shards = paths(tmp_path / name)
        folder = scratch(shards)
        with pytest.raises(error), claim(shards, folder):
            finish_part(folder)
            raise error("")
    assert os.listdir(tmp_path) == ["old"]
    assert os.listdir(tmp_path / "old") == []


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, KilledProcess, StorageError]
)
def test_what_a_stopped_run_has_finished_is_kept(tmp_path, capsys, error):
    shards = paths(tmp_path)
    folder = scratch(shards)
    with pytest.raises(error), claim(shards, folder):
        finish_part(folder)
        raise error("")
    err = capsys.readouterr().err
    assert "1 finished partitions are kept in " in err
    assert "; the same command continues" in err
    assert os.listdir(tmp_path) == [os.path.basename(folder)]
    with claim(shards, scratch(shards)):
        assert os.listdir(folder) == ["part-00003.json"]
    assert os.listdir(tmp_path) == []


def test_another_run_removes_what_a_killed_one_left_on_a_store():
    folder = "ram://killed"
    shards = [f"{folder}/a.tfrecord"]
    killed, other = (scratch(shards, x, True) for x in "12")
    storage.make_folder(killed)
    atomic.write_whole(f"{killed}/a.tfrecord", "x")
    kept = [f"{folder}/.partial-of-others", f"{folder}/b.tfrecord"]
    for path in kept:
        atomic.write_whole(path, "x")
    with claim(shards, other):
        assert storage.list_folder(folder) == sorted(
            os.path.basename(x) for x in (other, *kept)
        )


def test_another_run_removes_what_a_killed_one_left(tmp_path):
    shards = paths(tmp_path)
    killed, other = scratch(shards), scratch(shards, "two")
    neighbour = scratch([str(tmp_path / "b.tfrecord")])
    for folder in (killed, neighbour):
        os.makedirs(folder)
        finish_part(folder)
    with claim(shards, other):
        assert not os.path.exists(killed)
        assert os.listdir(other) == []
    assert os.listdir(tmp_path) == [os.path.basename(neighbour)]


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
    shards, second = paths(tmp_path), [str(tmp_path / x) for x in names]
    with claim(shards, scratch(shards)):
        finish_part(scratch(shards))
        with (
            pytest.raises(UserError) as error,
            claim(second, scratch(second, "other")),
        ):
            raise AssertionError("the lock is not held")
        assert str(error.value).startswith(
            f"{tmp_path}/a: in use by process {os.getpid()} on "
        )
        assert os.listdir(scratch(shards)) == ["part-00003.json"]


@pytest.mark.parametrize("below", [".", "deeper"])
def test_a_file_instead_of_the_folder_is_a_user_error(tmp_path, below):
    (tmp_path / "folder").write_text("a file")
    shards = paths(tmp_path / "folder" / below)
    with (
        pytest.raises(UserError) as error,
        claim(shards, scratch(shards)),
    ):
        pass
    message = str(error.value)
    assert message.startswith(f"{tmp_path}/folder")
    assert ": cannot be written: " in message
    assert message.endswith(
        "; check the path, its permissions and the free space"
    )
