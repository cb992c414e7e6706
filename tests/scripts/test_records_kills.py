"""Killed runs of create_pretraining_data, and what comes after them."""

import os
import signal

import pytest

import create_pretraining_data
from bert.common import command_line
from bert.data.corpus import documents
from bert.data.pretraining import creation, record_job
from tests.helpers import run_folders, text
from tests.helpers.fork_server import ForkServer

pytestmark = pytest.mark.slow
PARTS = 5


@pytest.fixture(scope="module")
def server():
    with ForkServer("create_pretraining_data") as server:
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
            "tests.helpers.killed_runs:die",
            flags(folder, name, **named),
            "create",
            function,
            "",
            number,
            documents.PARTITION_BYTES,
            log=folder / "log",
        )
        code = server.wait()
        assert code == -signal.SIGKILL, (folder / "log").read_text()

    return run


def scratch(folder):
    return [x for x in os.listdir(folder) if x.startswith(".partial-")]


MAKE = "bert.data.pretraining.record_job.Job.make_part"
SHARD = "bert.data.pretraining.record_job.Job.write_shard"
BEAM = {"runner": "DirectRunner", "num_processes": None}


@pytest.mark.parametrize(
    ("function", "number", "finished"),
    [
        ("bert.data.records.shuffle.write_portions", 1, 0),  # of the text
        (MAKE, 4, 3),
        # A part's records, without its counts.
        ("bert.common.jobs.runners.finish_part", 2, 1),
        (SHARD, 2, 5),
    ],
)
@pytest.mark.parametrize("runner", [{}, BEAM], ids=["processes", "Beam"])
def test_a_killed_run_continues(
    create, kill, folder, monkeypatch, function, number, finished, runner
):
    straight, _ = create("straight")
    kill("killed", function, number, **runner)
    assert len(scratch(folder / "killed")) == 1
    if finished:  # the corpus is not read again
        monkeypatch.setattr(documents, "documents", None)
    found, err = create("killed", **runner)
    line = f"continuing: {finished} of {PARTS} partitions are finished"
    assert (line in err) == (finished > 0), err
    assert found == straight


def test_a_stage_that_fails_on_beam_continues_on_processes(
    create, folder, monkeypatch, run_script
):
    straight, _ = create("straight")
    with monkeypatch.context() as patch:
        patch.setattr(record_job.Job, "write_shard", fail)
        with pytest.raises(RuntimeError, match="a worker has ended"):
            argv = flags(folder, "failed", **BEAM)
            run_script(create_pretraining_data, *argv)
    found, err = create("failed")
    assert f"continuing: {PARTS} of {PARTS} partitions are finished" in err
    assert found == straight


def fail(*_):
    raise RuntimeError("a worker has ended")


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (
            MAKE,
            "continuing: 2 of 5 partitions are finished; 1 is damaged, and ",
        ),
        (SHARD, "the text of a damaged part is removed: starting again"),
    ],
)
def test_a_damaged_part_is_made_again(create, kill, folder, function, line):
    straight, _ = create("straight")
    kill("killed", function, {MAKE: 4, SHARD: 1}[function])
    (name,) = scratch(folder / "killed")
    part = folder / "killed" / name / "part-00001.0"
    os.truncate(part, part.stat().st_size - 7)
    found, err = create("killed")
    assert line in err
    assert found == straight


def test_another_setting_or_input_takes_nothing_over(folder):
    def unfinished(**named):
        argv = ["", *flags(folder, "killed", **named)]
        settings = command_line.parse(argv, creation.Settings, "")
        return creation.open_job(settings).folder

    first = unfinished()
    assert unfinished(num_processes=3) == first
    others = [
        unfinished(random_seed=7),
        unfinished(do_lower_case=False),
        unfinished(strip_accents=False),
        unfinished(max_document_mb=3),
    ]
    for name in ("corpus.txt", "vocab.txt"):
        path = folder / name
        path.write_text(path.read_text() + "zebra\n")
        others.append(unfinished())
    assert len({first, *others}) == 7
