"""Many kills and preemptions; only in `make test-long`."""

import os
import random
import re
import signal
import time

import numpy as np
import pytest

from bert.training.saver import Saver
from tests.helpers import classifier_files, killed_runs, run_folders
from tests.helpers.fork_server import ForkServer

pytestmark = pytest.mark.long
PRETRAIN = "tests.helpers.killed_runs:pretrain"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills")
    killed_runs.write_files(folder)
    return folder


@pytest.fixture(scope="module")
def server():
    modules = "bert.training.saver", "bert.runs.finetuning"
    with ForkServer(*killed_runs.MODULES, *modules) as server:
        yield server


SCRATCH = ".partial"
KILLS = (  # function and word of the call, what is left, where the next starts
    ("bert.training.logs.log", "step 3/13 ", [], None),
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
        argv = killed_runs.flags(folder, tmp_path / output, 13)
        server.start(f"tests.helpers.killed_runs:{call}", argv, *args, log=log)
        assert server.wait() == code, log.read_text()
        return re.findall(r"resuming from step (\d+) ", log.read_text())

    assert run("straight") == []
    killed, start = tmp_path / "killed", []
    for function, word, left, step in KILLS:
        found = run(
            "killed", -signal.SIGKILL, "die", "pretrain", function, word
        )
        assert found == start
        assert killed_runs.leftovers(killed) == left
        start = [step] if step else []
    assert run("killed") == start
    straight = tmp_path / "straight"
    assert killed_runs.losses(killed) == killed_runs.losses(straight)
    ends = [killed_runs.digest(x, 13) for x in (straight, killed)]
    assert ends[0] == ends[1]
    assert killed_runs.leftovers(killed) == []


@pytest.mark.parametrize(
    ("flags", "names", "last"),
    [
        (
            {"num_folds": 3, "group_column": "author"},
            ["fold_1", "fold_2", "fold_3"],
            "all_rows/model.ckpt-13.json",
        ),
        (
            {"eval_fraction": 0.3, "learning_rate": "0.0005,0.005"},
            ["learning_rate_0.0005", "learning_rate_0.005"],
            "test_results.tsv",
        ),
    ],
)
def test_kills_of_several_runs_change_no_bit(
    server, tmp_path, flags, names, last
):
    """In the second run, after it, and in what comes after all of them."""
    classifier_files.write_model(tmp_path)
    named = classifier_files.write_table(tmp_path, 47) | flags
    named["save_checkpoints_steps"] = 3
    log = tmp_path / "log"

    def run(output, code=0, call="classify", *args):
        words = named | {"output_dir": tmp_path / output}
        argv = ["--do_train", "--do_eval", "--do_predict", "--noreport"]
        argv += [f"--{name}={x}" for name, x in words.items()]
        server.start(f"tests.helpers.killed_runs:{call}", argv, *args, log=log)
        assert server.wait() == code, log.read_text()
        # The best run of a list is repeated for its predictions.
        trained = log.read_text().partition("predictions and export use")[0]
        return re.findall(r"finished: .*/(\w+(?:\.\w+)?) is", trained)

    assert run("straight") == []
    second, done = names[1], []
    for word, finished in (
        (f"{second}/model.ckpt-6.json", names[:1]),
        (f"{second}/eval_results.txt", names[:2]),
        (last, names),
    ):
        die = (-signal.SIGKILL, "die", "classify", "os.replace", word)
        assert run("killed", *die) == done
        done = finished
    assert run("killed") == done

    # The command is the same but for --output_dir, which files have.
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    for folder in (".", *names):
        digests = [
            run_folders.digests(x / folder, "*.t[sx]*")
            for x in (straight, killed)
        ]
        digests[0].pop("command.txt"), digests[1].pop("command.txt")
        assert digests[0] == digests[1] and len(digests[0]) > 1
    for path in straight.glob("*/model.ckpt-*.index"):
        name, step = path.parent.name, int(path.stem.rpartition("-")[2])
        ends = [killed_runs.digest(x / name, step) for x in (straight, killed)]
        assert ends[0] == ends[1]
        assert killed_runs.losses(killed / name) == killed_runs.losses(
            straight / name
        )
        assert killed_runs.leftovers(killed / name) == []


def run_and_kill(server, argv, folder, kills, replicas, seed=1):
    """Kills a run at random moments after its first step, then lets it end."""
    rng = random.Random(seed)
    log = folder / "log"
    killed = 0
    while True:
        pid = server.start(PRETRAIN, argv, replicas, log=log)
        if killed == kills:
            assert server.wait() == 0, log.read_text()
            return
        code = server.kill_after(pid, log, "saved", rng.random() / 5)
        assert code == -9, log.read_text()
        killed += 1


@pytest.mark.parametrize(
    ("distribution", "replicas", "kills"),
    [("one_device", 1, 50), ("mirrored", 2, 20)],
)
def test_kills_change_no_bit(
    server, folder, tmp_path, distribution, replicas, kills
):
    """KILLS=200 in the environment takes that many of both."""
    kills = int(os.environ.get("KILLS", kills))
    runs, steps = [], 30 * kills + 1
    for name, number in (("straight", 0), ("killed", kills)):
        output = tmp_path / name
        argv = killed_runs.flags(
            folder, output, steps, distribution=distribution
        )
        run_and_kill(server, argv, tmp_path, number, replicas)
        runs.append((killed_runs.losses(output), output))
    assert runs[0][0] == runs[1][0]
    digests = {killed_runs.digest(output, steps) for _, output in runs}
    assert len(digests) == 1
    assert killed_runs.leftovers(tmp_path / "killed") == []


def test_a_hundred_kills_of_which_most_are_inside_a_save(server, tmp_path):
    """Saves of 64 MB; the remaining checkpoints are complete."""
    rng = random.Random(1)
    run, log = tmp_path / "run", tmp_path / "log"
    run.mkdir()
    inside, step = 0, 1
    for _ in range(100):
        pid = server.start(
            "tests.helpers.killed_runs:save_for_ever",
            str(run),
            step,
            64,
            log=log,
        )
        code = server.kill_after(pid, log, "saved", rng.random())
        assert code == -signal.SIGKILL, log.read_text()
        inside += any("partial" in name for name in os.listdir(run))
        saver = Saver(str(run), 2)
        saver.sweep()
        assert killed_runs.leftovers(run) == []
        restored = saver.restore_latest()
        assert restored.step >= step
        assert restored.settings == restored.state == {"step": restored.step}
        for name, value in restored.values.items():
            assert (np.asarray(value) == restored.step).all(), name
        step = restored.step + 1
    print(f"{inside} of 100 kills inside a save")
    assert inside >= 50


def test_twenty_preemptions_lose_no_step(server, folder, tmp_path):
    """SIGTERM: the run saves and ends in time, and repeats no step."""
    steps, rng = 2003, random.Random(2)
    output, log = tmp_path / "run", tmp_path / "log"
    argv = killed_runs.flags(folder, output, steps, save_checkpoints_steps=1000)
    slowest, at = 0.0, 0
    for number in range(21):
        pid = server.start(PRETRAIN, argv, log=log)
        if number == 20:
            assert server.wait() == 0, log.read_text()
            break
        while "\nstep " not in log.read_text():
            time.sleep(0.01)
        time.sleep(rng.random() / 5)
        start = time.monotonic()
        os.kill(pid, signal.SIGTERM)
        assert server.wait() == 75, log.read_text()
        slowest = max(slowest, time.monotonic() - start)
        text = log.read_text()
        if number:
            assert f"resuming from step {at} " in text
        (at,) = map(int, re.findall(r"stopped at step (\d+) of 2003", text))
    print(f"at step {at} after 20 preemptions, slowest end {slowest:.2f} s")
    assert slowest < 25
    straight = tmp_path / "straight"
    argv = killed_runs.flags(
        folder, straight, steps, save_checkpoints_steps=1000
    )
    server.start(PRETRAIN, argv, log=log)
    assert server.wait() == 0, log.read_text()
    assert killed_runs.losses(output) == killed_runs.losses(straight)
    assert killed_runs.digest(output, steps) == killed_runs.digest(
        straight, steps
    )
