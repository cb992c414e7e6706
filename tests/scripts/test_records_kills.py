"""Killed runs of create_pretraining_data, and what comes after them."""

import os
import signal

import pytest

import create_pretraining_data
from bert.data.corpus import documents
from bert.data.pretraining import partitions
from tests.helpers import killed_records, run_folders, text
from tests.helpers.fork_server import ForkServer

pytestmark = pytest.mark.slow
PARTS = 5


@pytest.fixture(scope="module")
def server():
    with ForkServer(*killed_records.MODULES) as server:
        yield server


@pytest.fixture
def folder(tmp_path, monkeypatch):
    text.write_corpus(tmp_path / "corpus.txt", 53)
    text.write_vocabulary(tmp_path / "vocab.txt")
    size = (tmp_path / "corpus.txt").stat().st_size
    monkeypatch.setattr(documents, "PARTITION_BYTES", 4 * (size // PARTS + 1))
    return tmp_path


def flags(folder, name, **named):
    outputs = [f"{folder}/{name}/{i}.tfrecord" for i in range(2)]
    named = {
        "input_file": folder / "corpus.txt",
        "vocab_file": folder / "vocab.txt",
        "output_file": ",".join(outputs),
        "max_seq_length": 31,
        "max_predictions_per_seq": 5,
        "dupe_factor": 2,
        "num_processes": 1,
        **named,
    }
    named = {name: value for name, value in named.items() if value is not None}
    return [f"--{key}={value}" for key, value in named.items()]


@pytest.fixture
def create(folder, run_script):
    """Runs the script; returns name -> sha256 of its files, and its log."""

    def run(name, **named):
        argv = flags(folder, name, **named)
        code, _, err = run_script(create_pretraining_data, *argv)
        assert code == 0, err
        return run_folders.digests(folder / name), err

    return run


@pytest.fixture
def kill(server, folder):
    """Runs the script up to a call that kills it."""

    def run(name, function, number, **named):
        server.start(
            "tests.helpers.killed_records:create_and_die",
            flags(folder, name, **named),
            function,
            number,
            documents.PARTITION_BYTES,
            log=folder / "log",
        )
        code = server.wait()
        assert code == -signal.SIGKILL, (folder / "log").read_text()

    return run


def scratch(folder):
    return [x for x in os.listdir(folder) if x.startswith(".partial-")]


MAKE = "bert.data.pretraining.partitions.Job.make_part"


@pytest.mark.parametrize(
    ("function", "number", "finished"),
    [
        ("bert.data.corpus.documents._append", 1, 0),  # no text is whole
        (MAKE, 1, 0),
        (MAKE, 4, 3),
        ("bert.data.records.shuffle.write_portions", 4, 3),
        ("json.dumps", 5, 1),  # a part's records, without its counts
        ("bert.data.pretraining.partitions.Job.write_shard", 2, 5),
        ("bert.data.records.writer.write_manifest", 1, 5),
    ],
)
def test_a_killed_run_continues(
    create, kill, folder, function, number, finished
):
    straight, _ = create("straight")
    kill("killed", function, number)
    assert len(scratch(folder / "killed")) == 1
    found, err = create("killed")
    line = f"continuing: {finished} of {PARTS} partitions are finished"
    assert (line in err) == (finished > 0), err
    assert found == straight


def test_another_run_takes_nothing_over(create, kill, folder):
    """Another seed; the first one last."""
    kill("killed", MAKE, 4)
    straight = {}
    for seed in (7, 12345):
        straight[seed], _ = create(f"straight-{seed}", random_seed=seed)
    (left,) = scratch(folder / "killed")
    found, err = create("killed", random_seed=7)
    assert "continuing" not in err
    assert found == straight[7]
    found, err = create("killed")
    assert "continuing" not in err
    assert found == straight[12345]


@pytest.mark.parametrize(
    "changed",
    [
        {"do_lower_case": False},
        {"strip_accents": False},
        {"max_document_mb": 3},
    ],
)
def test_another_setting_takes_nothing_over(create, kill, folder, changed):
    kill("killed", MAKE, 4)
    _, err = create("killed", **changed)
    assert "continuing" not in err


def change_corpus(folder):
    path = folder / "corpus.txt"
    path.write_text(path.read_text().replace("cat", "dog"))


def change_vocabulary(folder):
    path = folder / "vocab.txt"
    path.write_text(path.read_text().replace("cat\ndog\n", "dog\ncat\n"))


@pytest.mark.parametrize("change", [change_corpus, change_vocabulary])
def test_changed_inputs_are_noticed(create, kill, folder, change):
    kill("killed", MAKE, 4)
    change(folder)
    found, err = create("killed")
    assert "continuing" not in err
    assert found == create("straight")[0]


def test_the_corpus_is_not_read_again(create, kill, folder, monkeypatch):
    straight, _ = create("straight")
    kill("killed", MAKE, 4)
    with monkeypatch.context() as patch:
        patch.setattr(documents, "documents", None)
        found, _ = create("killed")
    assert found == straight


def test_a_run_continues_with_another_number_of_processes(
    create, folder, run_script, monkeypatch
):
    """After Ctrl-C, which tells so."""
    straight, _ = create("straight")
    make_part, made = partitions.Job.make_part, []

    def stop(self, partition):
        if len(made) == 3:
            raise KeyboardInterrupt
        made.append(partition)
        return make_part(self, partition)

    with monkeypatch.context() as patch:
        patch.setattr(partitions.Job, "make_part", stop)
        argv = flags(folder, "stopped")
        code, _, err = run_script(create_pretraining_data, *argv)
    assert code == 130
    assert "3 finished partitions are kept in " in err
    assert "; the same command continues" in err
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    found, err = create("stopped", num_processes=None)
    assert f"continuing: 3 of {PARTS} partitions are finished" in err
    assert found == straight
