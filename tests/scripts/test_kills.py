"""Runs that are killed end with the bits of a run that is not."""

import re
import signal

import pytest

from tests.helpers import killed_runs
from tests.helpers.fork_server import ForkServer

STEPS = 13
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server():
    with ForkServer(*killed_runs.MODULES) as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills")
    killed_runs.write_files(folder)
    return folder


SCRATCH = ".partial"
KILLS = (  # function and word of the call, what is left, where the next starts
    ("bert.training.logs.say", "step 3/13 ", [], None),
    ("bert.training.saver.Saver._describe", "model.ckpt-12", [SCRATCH], "8"),
    (
        "os.replace",
        "killed/model.ckpt-12.json",
        [
            SCRATCH,
            "model.ckpt-12.data-00000-of-00001",
            "model.ckpt-12.index",
        ],
        "8",
    ),
)


def test_three_kills_change_no_bit(server, folder, tmp_path):
    """Before the first checkpoint, inside one, and between its files' names."""
    log = tmp_path / "log"

    def run(output, code=0, call="pretrain", *args):
        argv = killed_runs.flags(folder, tmp_path / output, STEPS)
        server.start(f"tests.helpers.killed_runs:{call}", argv, *args, log=log)
        assert server.wait() == code, log.read_text()
        return re.findall(r"resuming from step (\d+) ", log.read_text())

    assert run("straight") == []
    killed, start = tmp_path / "killed", []
    for function, word, left, step in KILLS:
        found = run(
            "killed", -signal.SIGKILL, "pretrain_and_die", function, word
        )
        assert found == start
        assert killed_runs.leftovers(killed) == left
        start = [step] if step else []
    assert run("killed") == start
    straight = tmp_path / "straight"
    assert killed_runs.losses(killed) == killed_runs.losses(straight)
    ends = [killed_runs.digest(x, STEPS) for x in (straight, killed)]
    assert ends[0] == ends[1]
    assert killed_runs.leftovers(killed) == []
