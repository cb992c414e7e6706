"""Killed runs of predict.py on large files, and another runner of Beam."""

import os
import pathlib
import random
import subprocess
import sys
import time

import pytest

from tests.helpers import text
from tests.helpers.classifier_files import classifier_of, write_networks
from tests.helpers.process_ends import kill_after

ROOT = pathlib.Path(__file__).parents[2]
DASK = "apache_beam.runners.dask.dask_runner.DaskRunner"
KILLS = 20
pytestmark = pytest.mark.long


@pytest.fixture
def command(tmp_path):
    """Makes a command line that predicts 20,000 lines."""
    write_networks(tmp_path, classifier_of(tmp_path))
    rng = random.Random(3)
    with open(tmp_path / "lines.txt", "w") as file:
        for _ in range(20_000):
            words = rng.choices(text.WORDS, k=rng.randrange(1, 40))
            file.write(" ".join(words) + "\n")

    def make(output, *options, **flags):
        flags = {
            "model": tmp_path / "model",
            "input_file": tmp_path / "lines.txt",
            "output_file": tmp_path / output,
            "partition_mb": 0.02,
            **flags,
        }
        words = [f"--{name}={value}" for name, value in flags.items()]
        return [sys.executable, ROOT / "predict.py", *words, *options]

    return make


def start(words, log):
    with open(log, "wb") as file:
        return subprocess.Popen(
            words, stdout=file, stderr=file, start_new_session=True
        )


def test_kills_at_random_moments_do_not_change_the_output(command, tmp_path):
    """kill -9 of the first process, or of all; another run continues."""
    log, rng, out = tmp_path / "log", random.Random(1), tmp_path / "out.jsonl"
    began = time.monotonic()
    assert start(command("straight.jsonl"), log).wait() == 0, log.read_text()
    seconds = time.monotonic() - began
    expected = (tmp_path / "straight.jsonl").read_bytes()
    kills = continued = 0
    while kills < KILLS:
        processes = rng.choice([1, 2])
        words = command(out.name, num_processes=processes)
        process = start(words, log)
        was_killed = kill_after(
            rng.random() * seconds, process, group=kills % 2 == 1
        )
        if was_killed is not None:
            kills += was_killed
            assert not out.exists() or out.read_bytes() == expected
        else:
            assert process.returncode == 0, log.read_text()
            assert out.read_bytes() == expected
            assert not list(tmp_path.glob(".partial*"))
            out.unlink()
        continued += "continuing: " in log.read_text()
    print(f"{kills} kills, {continued} runs continued another")
    assert continued >= 5


def test_a_portable_runner_writes_the_same_bytes(command, tmp_path):
    words = command("straight.jsonl", num_processes=1)
    subprocess.run(words, check=True)
    subprocess.run(
        command("dask.jsonl", f"--runner={DASK}", "--", "--dask_npartitions=4"),
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    paths = [tmp_path / f"{name}.jsonl" for name in ("straight", "dask")]
    assert paths[0].read_bytes() == paths[1].read_bytes()
