"""Files are flushed to disk before they are renamed."""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import create_pretraining_data
from bert.common import atomic
from bert.data import embedding_files
from bert.data.corpus import corpus_writer
from bert.export import folder as export_folder
from bert.modeling.formats import conversion
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks.squad import answers
from bert.training.saver import Saver
from tests.helpers import text


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


def test_a_file_is_synced_complete_before_it_is_renamed(tmp_path, events):
    path = tmp_path / "a.txt"
    atomic.write_whole(str(path), "é" * 101)
    assert path.stat().st_size == 202
    assert events == [sync_of(path), ("name", str(path))]
    assert os.listdir(tmp_path) == ["a.txt"]


def test_the_names_of_a_folder_are_synced(tmp_path, events):
    atomic.sync(str(tmp_path))
    assert events == [sync_of(tmp_path)]


def save_checkpoint(folder):
    Saver(folder).save(7, {"a": 1.5}, {})


def write_shards(folder):
    text.write_corpus(pathlib.Path(f"{folder}/a.txt"), 3)
    text.write_vocabulary(pathlib.Path(f"{folder}/b.txt"))
    create_pretraining_data.main(
        [
            "",
            f"--input_file={folder}/a.txt",
            f"--vocab_file={folder}/b.txt",
            f"--output_file={folder}/0.tfrecord,{folder}/1.tfrecord",
            "--num_processes=1",
        ]
    )
    for name in "ab":
        os.remove(f"{folder}/{name}.txt")


def write_vectors(folder):
    vectors = embedding_files.Vectors([], [], np.ones((1, 3), "f4"))
    with tempfile.TemporaryFile() as file:
        embedding_files.write_arrays([vectors], True, file)
        file.seek(0)
        (arrays,) = [np.load(file)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(embedding_files, "_arrays", lambda _: [arrays])
            for kind in ("npz", "npy", "parquet"):
                join = embedding_files.joiner(kind, [1], True)
                join([], [{"has_text_keys": False}], f"{folder}/v.{kind}")


def write_answers(folder):
    answers.write(f"{folder}/nbest.json", {"q": [1]})
    answers.write(f"{folder}/predictions.json", {"q": "a"})


def write_corpus(folder):
    for name in ("a.txt", "a.txt.gz"):
        with corpus_writer.open_text(f"{folder}/{name}") as write:
            write("One.\n")
            write("Two.\n")


def write_export(folder):
    def save(partial):
        os.makedirs(f"{partial}/variables")
        for name in ("saved_model.pb", "variables/variables.index"):
            with open(f"{partial}/{name}", "w") as file:
                file.write(name)

    export_folder.write(f"{folder}/export", save)


def convert(folder):
    def write(bert, target, scratch):
        with open(f"{scratch}/vocab.txt", "w") as file:
            file.write("[PAD]")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conversion, "write", write)
        patch.setattr(conversion, "read", lambda _: None)
        patch.setattr(conversion, "outputs_of", lambda _: {"x": 1})
        patch.setattr(conversion, "largest_difference", lambda *_: 0)
        bert = ModelFolder.of("model", None, {})
        conversion.convert(bert, "none", folder)


@pytest.mark.parametrize(
    ("write", "count"),
    [
        (save_checkpoint, 4),
        (write_shards, 4),
        (write_vectors, 3),
        (write_answers, 2),
        (write_corpus, 2),
        (write_export, 2),
        (convert, 1),
    ],
)
def test_all_files_are_synced_before_they_are_renamed(
    tmp_path, events, write, count
):
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


def test_files_of_killed_processes_are_removed(tmp_path):
    """Another process that still runs keeps its own."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    path, host = tmp_path / "vocab.txt", socket.gethostname()
    kept = f"vocab.txt.{host}-{os.getppid()}.partial"
    for name in (f"vocab.txt.{host}-{ended.pid}.partial", kept):
        (tmp_path / name).touch()
    atomic.write_whole(str(path), "a", is_shared=True)
    assert {x.name for x in tmp_path.iterdir()} == {"vocab.txt", kept}
