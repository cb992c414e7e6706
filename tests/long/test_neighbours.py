"""Killed runs of several processes, and other runs into the same folder.

Half of the orphans are stopped before their parent is killed, and wake while
the other run is at work: as late as an orphan can be. Only in `make test-long`.
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

from tests.helpers import run_folders, small_parts, text
from tests.helpers.process_ends import Orphans

ROOT = pathlib.Path(__file__).parents[2]
KILLS = int(os.environ.get("KILLS", "50"))
pytestmark = pytest.mark.long

RECORDS = [
    "create_pretraining_data",
    "--vocab_file={folder}/vocab.txt",
    "--output_file={output}/0.tfrecord,{output}/1.tfrecord",
    "--max_seq_length=31",
    "--max_predictions_per_seq=5",
    "--dupe_factor=1",
]
VOCABULARY = ["create_vocab", "--output_file={output}/vocab.txt"]
CORPUS = [
    "prepare_corpus",
    "--output_file={output}/corpus.txt",
    "--document_boundary=blank_line",
    "--held_out=0.1",
]
COMMON = ["--input_file={folder}/corpus.txt", "--num_processes=2"]
RUNS = {  # script -> two different runs into the same files
    "records": [[*RECORDS, f"--random_seed={seed}"] for seed in (1, 2)],
    "vocabulary": [[*VOCABULARY, f"--vocab_size={n}"] for n in (151, 167)],
    "corpus": [[*CORPUS, f"--random_seed={seed}"] for seed in (1, 2)],
}


@pytest.fixture
def folder(tmp_path):
    text.write_vocabulary(tmp_path / "vocab.txt")
    text.write_corpus(tmp_path / "corpus.txt", 3000)
    return tmp_path


def start(folder, output, words):
    output.mkdir(exist_ok=True)
    words = [x.format(folder=folder, output=output) for x in [*words, *COMMON]]
    with open(folder / "log", "wb") as log:
        return subprocess.Popen(
            [sys.executable, "-c", small_parts.PROGRAM, *words],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )


def run(folder, output, words):
    process = start(folder, output, words)
    assert process.wait() == 0, (folder / "log").read_text()


@pytest.mark.parametrize("script", RUNS)
def test_kills_followed_by_another_run_change_no_byte(folder, script):
    runs, expected, seconds = RUNS[script], [], 0.0
    for number, words in enumerate(runs):
        straight, began = folder / f"straight{number}", time.monotonic()
        run(folder, straight, words)
        expected.append(run_folders.digests(straight))
        seconds = time.monotonic() - began
    assert expected[0] != expected[1]
    rng, killed = random.Random(1), folder / "killed"
    number = kills = orphans_seen = stopped = 0
    while kills < KILLS:
        number += 1
        process = start(folder, killed, runs[1 - number % 2])
        try:
            process.wait(rng.uniform(0.05, 1.0) * seconds)
        except subprocess.TimeoutExpired:
            orphans = Orphans(process.pid)
            if number % 4 < 2:
                orphans.send(signal.SIGSTOP)
                stopped += bool(orphans)
            process.kill()
            kills += process.wait() == -signal.SIGKILL
        else:
            orphans = Orphans(process.pid)
        orphans_seen += len(orphans)
        began = time.monotonic()
        other = start(folder, killed, runs[number % 2])
        try:
            other.wait(rng.uniform(0.05, 1.0) * seconds)
        except subprocess.TimeoutExpired:
            orphans.send(signal.SIGCONT)  # others have ended by now
        assert other.wait() == 0, (folder / "log").read_text()
        seconds = time.monotonic() - began
        found = run_folders.digests(killed)
        orphans.send(signal.SIGCONT)
        assert orphans.end(), "a process was left"
        assert found == expected[number % 2], number
        assert run_folders.digests(killed) == found, "changed by an orphan"
    print(
        f"{script}: {kills} kills of {number} runs, {orphans_seen} processes "
        f"left behind, stopped before {stopped} kills"
    )
