"""Runs that are killed end with the bits of a run that is not."""

import random

import pytest

from tests import killed_runs, small
from tests.fork_server import ForkServer
from tests.pretraining_files import write_records

STEPS = 47
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server():
    with ForkServer(*killed_runs.MODULES) as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills")
    write_records(folder / "train.tfrecord", 53)
    config = small.config(
        num_hidden_layers=1,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    )
    (folder / "config.json").write_text(config.to_json())
    return folder


def flags(folder, output, steps=STEPS, **changed):
    named = {
        "input_file": folder / "train.tfrecord",
        "bert_config_file": folder / "config.json",
        "train_batch_size": 4,
        "num_train_steps": steps,
        "num_warmup_steps": 5,
        "learning_rate": 0.003,
        "save_checkpoints_steps": 5,
        "log_steps": 3,
        "iterations_per_loop": 2,
        "output_dir": output,
        **changed,
    }
    return ["--do_train", *(f"--{name}={x}" for name, x in named.items())]


@pytest.fixture(scope="module")
def straight(server, folder):
    """A run that is never killed."""
    log = folder / "log"
    argv = flags(folder, folder / "straight")
    server.start("tests.killed_runs:pretrain", argv, log=log)
    assert server.wait() == 0, log.read_text()
    return folder / "straight"


def run_and_kill(server, argv, folder, kills, replicas=1, seed=1):
    """Kills a run at random moments after its first step; lets it end."""
    rng = random.Random(seed)
    log = folder / "log"
    killed = 0
    while True:
        pid = server.start(
            "tests.killed_runs:pretrain", argv, replicas, log=log
        )
        if killed == kills:
            assert server.wait() == 0, log.read_text()
            return
        code = server.kill_after(pid, log, "saved", rng.random() / 5)
        assert code == -9, log.read_text()
        killed += 1


@pytest.mark.long
def test_three_kills_change_no_bit(server, folder, straight, tmp_path):
    argv = flags(folder, tmp_path / "killed")
    run_and_kill(server, argv, tmp_path, 3)
    killed = tmp_path / "killed"
    assert killed_runs.losses(killed) == killed_runs.losses(straight)
    assert killed_runs.digest(killed, STEPS) == killed_runs.digest(
        straight, STEPS
    )
    assert killed_runs.leftovers(killed) == []
