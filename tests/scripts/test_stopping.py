"""Stopped and resumed runs end with the bits of an uninterrupted one."""

import os
import signal

import pytest

from bert.data.records import content_check
from bert.training import logs
from bert.training.saver import Saver
from bert.training.trainer import Trainer
from tests.helpers import killed_runs, pretraining_runs
from tests.helpers.pretraining_files import write_records

pytestmark = pytest.mark.slow
STEPS = 19  # 14 of the first phase, 5 of the second


@pytest.mark.long
def test_a_run_in_phases_is_stopped_in_both(
    pretrain, tmp_path, tmp_path_factory, monkeypatch
):
    """In both phases and in an evaluation, by the clock and by signals."""
    short, long = pretraining_runs.shared(tmp_path_factory), tmp_path / "long"
    write_records(long / "train.tfrecord", 17, seed=3, length=13)
    flags = {
        "input_file": None,
        "phases": f"{short}/train*:30,{long}/*.tfrecord:10:3",
        "eval_input_file": short / "held_out.tfrecord",
        "eval_steps": 5,
        "num_train_steps": STEPS,
        "log_steps": 3,
        "iterations_per_loop": 1,
    }
    straight, stopped = tmp_path / "straight", tmp_path / "stopped"
    _, err = pretrain(straight, **flags)
    assert "steps 1 to 14: 23 records of 11 tokens, batches of 4\n" in err
    assert "steps 15 to 19: 17 records of 13 tokens, batches of 3\n" in err
    _, err = pretrain(stopped, max_time="0.2s", **flags)
    assert "stopped at step 1 of 19, which is saved: the time of" in err

    evaluate, log_training = Trainer.evaluate, logs.log_training

    def interrupted(self, batches):
        if self.train_step.optimizer.step == 10:
            os.kill(os.getpid(), signal.SIGTERM)
        return evaluate(self, batches)

    def log_and_send(now, *rest):
        log_training(now, *rest)
        if now == 18:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "evaluate", interrupted)
        _, err = pretrain(stopped, code=75, **flags)
    assert "stopped at step 10 of 19, which is saved: SIGTERM; the same" in err
    assert "step 10 held out" not in err
    monkeypatch.setattr(logs, "log_training", log_and_send)
    _, err = pretrain(stopped, code=130, **flags)
    assert "step 10 held out" in err
    assert "stopped at step 18 of 19, which is saved: SIGINT; the same" in err
    _, err = pretrain(stopped, **flags)
    assert "steps 1 to 14" not in err
    assert killed_runs.losses(stopped) == killed_runs.losses(straight)
    ends = [killed_runs.digest(x, STEPS) for x in (straight, stopped)]
    assert ends[0] == ends[1]
    bests = [Saver(str(x / "best")).saved_steps() for x in (straight, stopped)]
    assert bests[0] == bests[1]


def test_a_shard_that_is_damaged_while_it_is_read_is_named(
    pretrain, tmp_path, monkeypatch
):
    path = tmp_path / "train.tfrecord"
    write_records(path, 23)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    flags = {"code": 2, "input_file": path, "num_train_steps": 9}
    _, before = pretrain(tmp_path / "run", **flags)
    # Of more gigabytes only the sizes are compared before the first step.
    monkeypatch.setattr(content_check, "_HASHED_BYTES", 0)
    _, err = pretrain(tmp_path / "run", **flags)
    for lines in (before, err):
        line = lines.splitlines()[-1]
        assert line.startswith(f"error: {path}: record 11 at byte ")
        assert "checksum of the data differs; make the records again" in line
