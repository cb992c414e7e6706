"""Files of one machine: flushed to disk before they are renamed, listed."""

import os
import socket

import numpy as np
import pytest

from bert.common import atomic, storage
from bert.common.errors import UserError
from bert.common.jobs import runners
from bert.data.corpus import corpus_writer
from bert.training.saver import Saver


@pytest.fixture
def events(monkeypatch):
    """Records syncs, with sizes, and renames, in order."""
    seen = []
    originals = {name: getattr(os, name) for name in ("replace", "rename")}
    sync = os.fsync

    def synced(number):
        sync(number)
        state = os.fstat(number)
        seen.append(("sync", state.st_ino, state.st_size))

    def name_with(original):
        def named(source, target):
            original(source, target)
            seen.append(("name", str(target)))

        return named

    monkeypatch.setattr(os, "fsync", synced)
    for name, original in originals.items():
        monkeypatch.setattr(os, name, name_with(original))
    return seen


def sync_of(path):
    """Returns the event of a file that is synced when complete."""
    state = os.stat(path)
    return ("sync", state.st_ino, state.st_size)


def write_text(folder):
    atomic.write_whole(f"{folder}/a.txt", "é" * 101)


def save_checkpoint(folder):
    Saver(folder).save(7, {"a": 1.5}, {})


def write_corpus(folder):
    for name in ("a.txt", "a.txt.gz"):
        with corpus_writer.open_text(f"{folder}/{name}") as write:
            write("One.\n")
            write("Two.\n")


def write_part(folder):
    with runners.whole_file(f"{folder}/a.npy") as file:
        np.save(file, np.ones([3, 5]))


def write_folder(folder):
    with atomic.whole_folder(folder) as partial:
        os.makedirs(f"{partial}/variables")
        for name in ("saved_model.pb", "variables/variables.index"):
            with open(f"{partial}/{name}", "w") as file:
                file.write(name)


def write_new_folder(folder):
    write_folder(f"{folder}/export")


@pytest.mark.parametrize(
    ("write", "count"),
    [
        (write_text, 1),
        (save_checkpoint, 4),
        (write_corpus, 2),
        (write_part, 1),
        (write_folder, 2),
        (write_new_folder, 2),
    ],
)
def test_all_files_are_synced_before_they_are_renamed(
    tmp_path, events, write, count
):
    atomic.sync(str(tmp_path))
    assert events.pop() == sync_of(tmp_path)
    write(str(tmp_path))
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) == count
    for path in written:
        names = [("name", str(x)) for x in (path, *path.parents)]
        named = max(i for i, event in enumerate(events) if event in names)
        assert sync_of(path) in events[:named], path


def test_the_names_of_a_checkpoint_are_synced_before_it_is_the_newest(
    tmp_path, events
):
    save_checkpoint(str(tmp_path))
    described, newest = (
        events.index(("name", f"{tmp_path}/{name}"))
        for name in ("model.ckpt-7.json", "checkpoint")
    )
    folder = tmp_path.stat().st_ino
    synced = [event[:2] for event in events].index(("sync", folder))
    assert described < synced < newest


def test_an_error_about_another_file_keeps_its_cause(tmp_path):
    for is_inside in (True, False):
        expected = UserError if is_inside else PermissionError
        with (
            pytest.raises(expected) as caught,
            atomic.whole_folder(f"{tmp_path}/a") as partial,
        ):
            path = f"{partial}/x" if is_inside else f"{tmp_path}/b"
            raise PermissionError(13, "Permission denied", path)
        assert "Permission denied" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("gs://bucket/a", True),
        ("/a/b", False),
        ("https://tfhub.dev/a", False),
        ("http://a", False),
    ],
)
def test_shared_storage_has_a_scheme_other_than_http(path, expected):
    assert storage.is_remote(path) == expected


def test_a_file_may_have_the_name_of_a_pattern(tmp_path):
    for name in ("a[1].txt", "a1.txt", "b.txt"):
        (tmp_path / name).touch()
    given = f"{tmp_path}/a[1].txt,{tmp_path}/?.txt"
    found = storage.list_files(given, "input_file")
    assert found == [f"{tmp_path}/a[1].txt", f"{tmp_path}/b.txt"]


def test_processes_on_all_hosts_may_write_the_same_file(tmp_path, monkeypatch):
    """Also if the name of a host starts with another's name."""
    path = tmp_path / "vocab.txt"
    monkeypatch.setattr(socket, "gethostname", lambda: "node")
    (tmp_path / "vocab.txt.node-1-4711.partial").write_text("another host's")
    with atomic.open_whole(str(path), "partial") as file:
        file.write(b"a")
        file.flush()
        atomic.write_whole(str(path), "b", is_shared=True)
        assert path.read_text() == "b" and len(os.listdir(tmp_path)) == 3
    assert path.read_text() == "a" and len(os.listdir(tmp_path)) == 2
