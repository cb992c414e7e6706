"""Stopped and resumed runs end with the bits of an uninterrupted one."""

import os
import shutil
import signal

import numpy as np
import pytest
import tensorflow as tf

import run_pretraining
from bert.data.records import content_check
from bert.training import logs, optimization
from bert.training.run import Run
from bert.training.saver import Saver
from tests.helpers import killed_runs, small, tiny, training_loop
from tests.helpers.pretraining_files import write_records

pytestmark = pytest.mark.slow
STEPS = 19  # 14 of the first phase, 5 of the second


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopping")
    write_records(folder / "short" / "train.tfrecord", 23)
    write_records(folder / "long" / "train.tfrecord", 17, seed=3, length=13)
    write_records(folder / "short" / "held_out.tfrecord", 7, seed=2)
    config = small.config(
        num_hidden_layers=1,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    )
    (folder / "config.json").write_text(config.to_json())
    return folder


@pytest.fixture
def pretrain(folder, run_script):
    """Runs the script on the short records; returns its output."""

    def run(output, code=0, **named):
        named = {
            "input_file": folder / "short" / "train.tfrecord",
            "bert_config_file": folder / "config.json",
            "train_batch_size": 4,
            "num_warmup_steps": 2,
            "learning_rate": 0.01,
            "log_steps": 3,
            "output_dir": output,
            **named,
        }
        named = {name: x for name, x in named.items() if x is not None}
        found, _, err = run_script(run_pretraining, "--do_train", **named)
        assert found == code, err
        return err

    return run


@pytest.fixture
def send(monkeypatch):
    """Sends a signal when the line of a step is logged."""
    log_training = logs.log_training

    def at(step, number):
        def log_and_send(now, *rest):
            log_training(now, *rest)
            if now == step:
                os.kill(os.getpid(), number)

        monkeypatch.setattr(logs, "log_training", log_and_send)

    return at


def in_phases(folder):
    return {
        "input_file": None,
        "phases": f"{folder}/short/train*:30,{folder}/long/*.tfrecord:10:3",
        "eval_input_file": folder / "short" / "held_out.tfrecord",
        "eval_steps": 5,
        "num_train_steps": STEPS,
        "iterations_per_loop": 1,
    }


@pytest.fixture(scope="module")
def interrupted_evaluation():
    """The first evaluation of step 10 meets a SIGTERM."""
    evaluate, seen = Run.means, []

    def interrupted(self, batches):
        step = self.steps.optimizer.step
        if step == 10 and step not in seen:
            seen.append(step)
            os.kill(os.getpid(), signal.SIGTERM)
        return evaluate(self, batches)

    return interrupted


@pytest.mark.long
def test_a_run_in_phases_is_stopped_in_both(
    folder, pretrain, send, tmp_path, monkeypatch, interrupted_evaluation
):
    """In both phases and in an evaluation, by the clock and by signals."""
    flags = in_phases(folder)
    straight, stopped = tmp_path / "straight", tmp_path / "stopped"
    err = pretrain(straight, **flags)
    assert "steps 1 to 14: 23 records of 11 tokens, batches of 4\n" in err
    assert "steps 15 to 19: 17 records of 13 tokens, batches of 3\n" in err
    err = pretrain(stopped, train_for="0.2s", **flags)
    assert (
        "stopped at step 1 of 19, which is saved: the time of --train_fo"
        in (err)
    )
    monkeypatch.setattr(Run, "means", interrupted_evaluation)
    err = pretrain(stopped, 75, **flags)
    assert "stopped at step 10 of 19, which is saved: SIGTERM; the same" in err
    assert "step 10 held out" not in err
    send(18, signal.SIGINT)
    err = pretrain(stopped, 130, **flags)
    assert "step 10 held out" in err
    assert "stopped at step 18 of 19, which is saved: SIGINT; the same" in err
    err = pretrain(stopped, **flags)
    assert "steps 1 to 14" not in err
    assert killed_runs.losses(stopped) == killed_runs.losses(straight)
    ends = [killed_runs.digest(x, STEPS) for x in (straight, stopped)]
    assert ends[0] == ends[1]
    bests = [Saver(str(x / "best")).steps() for x in (straight, stopped)]
    assert bests[0] == bests[1]


def test_a_shard_that_is_damaged_while_it_is_read_is_named(
    folder, pretrain, tmp_path, monkeypatch
):
    path = tmp_path / "train.tfrecord"
    for name in ("train.tfrecord", "_train.manifest.json"):
        shutil.copy(folder / "short" / name, tmp_path / name)
    shutil.copy(next((folder / "short").glob("vocab-*")), tmp_path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    before = pretrain(tmp_path / "run", 2, input_file=path, num_train_steps=9)
    # Of more gigabytes only the sizes are compared before the first step.
    monkeypatch.setattr(content_check, "_HASHED_BYTES", 0)
    err = pretrain(tmp_path / "run", 2, input_file=path, num_train_steps=9)
    for lines in (before, err):
        line = lines.splitlines()[-1]
        assert line.startswith(f"error: {path}: record 11 at byte ")
        assert "checksum of the data differs; make the records again" in line


def test_a_dropped_part_of_the_state_is_detected(tmp_path):
    """The comparison of runs must be able to fail."""
    made = tiny.make_steps(rate=0.1)
    optimizer = made.optimizer
    optimizer.learning_rate = optimization.WarmupLinearDecay(0.01, 7, 2)
    rows = [tiny.batch(seed) for seed in range(6)]
    rows = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    dataset = tf.data.Dataset.from_tensor_slices(rows).repeat()

    def plan(last, skip=0):
        return training_loop.phase(
            lambda step: dataset.skip(step - skip), last, tiny.ROWS
        )

    def end(change=lambda: None, skip=0, made=made):
        """Bits of weights and slots at step 6, resumed from step 3."""
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        shutil.copytree(tmp_path / "start", folder)
        run = training_loop.make_run(made, folder)
        run.resume()
        change()
        run.fit([plan(6, skip)])
        return [value.numpy().tobytes() for value in run._variables.values()]

    def seeded(seed):
        return tiny.again(made, seed)

    def drop_slots():
        for slot in optimizer.adam_m + optimizer.adam_v:
            slot.assign(slot * 0)

    (tmp_path / "start").mkdir()
    training_loop.make_run(made, tmp_path / "start").fit([plan(3)])
    expected = end()
    assert end() == expected
    assert end(drop_slots) != expected
    assert end(lambda: optimizer.iterations.assign(0)) != expected
    assert end(skip=1) != expected  # another batch
    assert end(made=seeded(4)) != expected
    assert end(made=seeded(3)) == expected
    optimizer.learning_rate = lambda: 0.01  # the schedule's peak, no schedule
    assert end(made=seeded(3)) != expected
