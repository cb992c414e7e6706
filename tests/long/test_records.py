"""Records of large corpora and killed runs; only in `make test-long`."""

import hashlib
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import time

import pytest

from data.corpus import documents
from tests.helpers import text

ROOT = pathlib.Path(__file__).parents[2]
KILLS = 20
pytestmark = pytest.mark.long


def command(folder, output, **flags):
    flags = {
        "input_file": folder / "corpus.txt",
        "vocab_file": folder / "vocab.txt",
        "output_file": f"{output}/0.tfrecord,{output}/1.tfrecord",
        **flags,
    }
    script = ROOT / "create_pretraining_data.py"
    words = [f"--{name}={value}" for name, value in flags.items()]
    return [sys.executable, script, *words]


def digests(folder):
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
    }


def test_a_run_that_is_killed_can_be_run_again(tmp_path):
    """kill -9 of all its processes at random moments."""
    text.write_vocabulary(tmp_path / "vocab.txt")
    text.write_corpus(tmp_path / "corpus.txt", 40_000)
    flags = {"max_seq_length": 31, "max_predictions_per_seq": 5}
    flags |= {"dupe_factor": 1, "num_processes": 2}
    start = time.monotonic()
    subprocess.run(
        command(tmp_path, tmp_path / "straight", **flags), check=True
    )
    length = time.monotonic() - start
    expected = digests(tmp_path / "straight")
    rng = random.Random(1)
    killed = 0
    for _ in range(KILLS):
        process = subprocess.Popen(
            command(tmp_path, tmp_path / "killed", **flags),
            start_new_session=True,
        )
        try:
            process.wait(rng.uniform(0.2, 0.95) * length)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
        if (tmp_path / "killed").exists():
            names = {p.name for p in (tmp_path / "killed").iterdir()}
            shards = {name for name in names if name.endswith(".tfrecord")}
            found = digests_of(tmp_path / "killed", shards)
            assert found.items() <= expected.items()
    assert killed > KILLS / 2
    subprocess.run(command(tmp_path, tmp_path / "killed", **flags), check=True)
    assert digests(tmp_path / "killed") == expected


def digests_of(folder, names):
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in names
    }


def test_memory_does_not_grow_with_the_corpus(tmp_path):
    """1 GB of text in two processes of at most 1 GB each."""
    text.write_vocabulary(tmp_path / "vocab.txt")
    rng = random.Random(1)
    with open(tmp_path / "corpus.txt", "w") as file:
        while file.tell() < 1_000_000_000:
            for _ in range(1000):
                sentence = " ".join(rng.choices(text.WORDS, k=17))
                file.write(f"{sentence} .\n" * rng.randint(2, 9) + "\n")
    flags = {"dupe_factor": 1, "num_processes": 2}
    subprocess.run(command(tmp_path, tmp_path / "out", **flags), check=True)
    # Kilobytes of the largest process that has ended.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert peak < 1_000_000
    assert (tmp_path / "out" / "0.tfrecord").stat().st_size > 10**9
    assert documents.PARTITION_BYTES == 4_000_000
