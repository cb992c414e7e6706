"""Records of large corpora, killed runs and Beam; only in `make test-long`."""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from bert.data.corpus import documents
from tests.helpers import run_folders, small_parts, text
from tests.helpers.process_ends import children, kill_after

ROOT = pathlib.Path(__file__).parents[2]
pytestmark = pytest.mark.long
DASK = "apache_beam.runners.dask.dask_runner.DaskRunner"


def command(folder, output, *options, **flags):
    flags = {
        "input_file": folder / "corpus.txt",
        "vocab_file": folder / "vocab.txt",
        "output_file": f"{output}/0.tfrecord,{output}/1.tfrecord",
        "max_seq_length": 31,
        "max_predictions_per_seq": 5,
        "dupe_factor": 1,
        **flags,
    }
    script = ROOT / "create_pretraining_data.py"
    words = [f"--{name}={value}" for name, value in flags.items()]
    return [sys.executable, script, *words, *options]


def create(folder, name, *options, **flags):
    """Runs the script to its end; returns name -> sha256."""
    words = command(folder, folder / name, *options, **flags)
    subprocess.run(words, check=True, cwd=folder)
    return run_folders.digests(folder / name)


@pytest.fixture
def folder(tmp_path):
    text.write_vocabulary(tmp_path / "vocab.txt")
    text.write_corpus(tmp_path / "corpus.txt", 40_000)
    return tmp_path


def start(folder, output, log, processes):
    """Starts the script with small partitions in a process group."""
    _, _, *flags = command(folder, output, num_processes=processes)
    words = [small_parts.PROGRAM, "create_pretraining_data", *flags]
    with open(log, "wb") as file:
        return subprocess.Popen(
            [sys.executable, "-c", *words],
            cwd=ROOT,
            stderr=file,
            start_new_session=True,
        )


def test_a_hundred_kills_of_runs_that_continue(folder):
    """kill -9 of the first process, or of all, at random moments.

    After each kill every file under a final name is whole, and the same
    command continues, with one process or two. Whatever run ends has made the
    same bytes.
    """
    killed, log, rng = folder / "killed", folder / "log", random.Random(1)
    began = time.monotonic()
    straight = start(folder, folder / "straight", log, 2)
    assert straight.wait() == 0, log.read_text()
    seconds = time.monotonic() - began
    expected = run_folders.digests(folder / "straight")
    kills = ends = continued = 0
    while kills < 100:
        process = start(folder, killed, log, rng.choice([1, 2]))
        was_killed = kill_after(
            rng.random() * seconds, process, group=kills % 2 == 1
        )
        if was_killed is not None:
            kills += was_killed
            if killed.exists():
                found = run_folders.digests(killed, "[!.]*").items()
                whole = {x for x in found if not x[0].endswith(".partial")}
                assert whole <= expected.items()
        else:
            assert process.returncode == 0, log.read_text()
            assert run_folders.digests(killed) == expected
            shutil.rmtree(killed)
            ends += 1
        continued += "continuing: " in log.read_text()
    print(f"{kills} kills, {ends} ends, {continued} runs continued another")
    assert continued >= 20


def test_a_worker_of_dask_is_killed(folder):
    """Its work is done again by another one, with the same bytes."""
    expected = create(folder, "straight", num_processes=1)
    process = subprocess.Popen(
        command(
            folder,
            folder / "dask",
            f"--runner={DASK}",
            "--",
            "--dask_npartitions=4",
        ),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    killed = []
    while process.poll() is None and not killed:
        if not list(folder.glob("dask/.partial-*/part-*")):
            continue  # no worker has made records yet
        workers = [
            worker
            for child in children(process.pid)
            for worker in (child, *children(child))
            if makes_records(worker)
        ]
        for worker in workers[:1]:
            os.kill(worker, signal.SIGKILL)
            killed.append(worker)
    assert process.wait() == 0
    assert killed
    assert run_folders.digests(folder / "dask") == expected


def makes_records(pid):
    """Whether a process has loaded the checksums of records."""
    try:
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False
    return "google_crc32c" in maps


def test_memory_does_not_grow_with_the_corpus(tmp_path):
    """1 GB of text in two processes of at most 1 GB each."""
    text.write_vocabulary(tmp_path / "vocab.txt")
    rng = random.Random(1)
    with open(tmp_path / "corpus.txt", "w") as file:
        while file.tell() < 1_000_000_000:
            for _ in range(1000):
                sentence = " ".join(rng.choices(text.WORDS, k=17))
                file.write(f"{sentence} .\n" * rng.randint(2, 9) + "\n")
    sizes = {"max_seq_length": 128, "max_predictions_per_seq": 20}
    words = command(tmp_path, tmp_path / "out", num_processes=2, **sizes)
    process = subprocess.Popen(words, cwd=tmp_path)
    # Kilobytes of the largest of its processes.
    _, process.returncode, usage = os.wait4(process.pid, 0)
    assert process.returncode == 0
    assert usage.ru_maxrss < 1_000_000
    assert (tmp_path / "out" / "0.tfrecord").stat().st_size > 5 * 10**8
    assert documents.PARTITION_BYTES == 4_000_000
