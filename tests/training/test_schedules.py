"""Learning rates against NumPy, and runs that follow them."""

import itertools
import types

import numpy as np
import pytest
import tensorflow as tf

from bert.training import logs
from bert.training import trainer as trainer_lib
from bert.training.optimization import (
    WarmupClockDecay,
    WarmupLinearDecay,
    WarmupStableDecay,
)
from tests.helpers import run_folders, tiny
from tests.helpers.pretraining_files import assert_same_bits, tensors
from tests.helpers.training_loop import make_run, phase

PEAK, STEPS = 0.7, 11


@pytest.mark.parametrize("warmup", [0, 3, 11])
@pytest.mark.parametrize("decay", [None, 0, 5, 11])
def test_rates_of_steps_equal_numpy(warmup, decay):
    """Decay None: linear from step 0; 0: none."""
    steps = np.arange(13)
    if decay is None:
        schedule = WarmupLinearDecay(PEAK, STEPS, warmup)
        later = 1 - steps.clip(max=STEPS) / STEPS
    else:
        schedule = WarmupStableDecay(PEAK, STEPS, warmup, decay)
        share = (steps - STEPS + decay) / max(decay, 1)
        later = 1 - np.sqrt(share.clip(0, 1)) if decay else np.ones(13)
    expected = np.where(steps < warmup, steps / max(warmup, 1), later)
    rates = [float(schedule(step)) for step in steps]
    np.testing.assert_allclose(rates, PEAK * expected, atol=1e-6)


def train(folder, schedule, last, scores=None, **named):
    """Resumes a run of the tiny network, or begins it; trains to a step."""
    folder.mkdir(exist_ok=True)
    task = {"learning_rate": schedule}
    if scores:
        task["validate"] = lambda run: {"score": scores[run.step]}
    steps = tiny.make_steps(schedule=schedule)
    run = make_run(steps, folder, task, iterations_per_loop=1, **named)
    run.restore()
    run.fit([phase(batches, last, tiny.ROWS)])
    return run


def batches(step):
    rows = [tiny.batch(seed) for seed in range(STEPS)]
    stacked = {name: np.stack([x[name] for x in rows]) for name in rows[0]}
    return tf.data.Dataset.from_tensor_slices(stacked).repeat().skip(step)


@pytest.mark.slow
def test_a_run_without_an_end_goes_on_to_a_decay(tmp_path):
    """The steps before the decay are those of a run that knew its end."""
    train(tmp_path / "open", WarmupStableDecay(PEAK, 5, 2), 5)
    for name in ("open", "straight"):
        train(tmp_path / name, WarmupStableDecay(PEAK, STEPS, 2, 4), STEPS)
    ours, theirs = (
        tensors(tmp_path / name / f"model.ckpt-{STEPS}")
        for name in ("open", "straight")
    )
    assert_same_bits(ours, theirs)


@pytest.mark.slow
def test_the_rate_follows_the_clock_over_a_resumption(
    tmp_path, monkeypatch, capsys
):
    """Each step takes 2 of 12 seconds; the run is stopped after its third.

    Only the schedule ends it, not the flag, which one process alone would see.
    """

    def clock():
        schedule = WarmupClockDecay(PEAK, 99, 1, 12.0)
        schedule.build()
        return schedule

    for last in (3, 99, 99):
        ticks = itertools.count(7.0, 2.0)
        time = types.SimpleNamespace(monotonic=lambda t=ticks: next(t))
        monkeypatch.setattr(trainer_lib, "time", time)
        scores = {3: 0.5, 6: 0.7}
        run = train(tmp_path, clock(), last, scores, max_time="0s")
        assert run.step == (3 if last == 3 else 6)
    lines = run_folders.points(tmp_path)
    rates = [x["learning_rate"] for x in lines if x["kind"] == "train"]
    shares = np.array([1, *(1 - np.arange(4, 13, 2) / 12)])
    np.testing.assert_allclose(rates, PEAK * shares * [0, 1, 1, 1, 1, 1], 1e-6)
    assert run.best.steps() == [6]
    late = clock()
    late.spent.assign(13.0)
    assert float(late(7)) == 0
    assert run._log.seconds_left == 0
    assert capsys.readouterr().err.endswith(
        "finished: stopped early at step 6 of 99, the time of --max_time is "
        "up\n"
    )


def test_only_one_step_has_a_rate_of_0(tmp_path, monkeypatch):
    """Calls of five steps take 2 of 12 seconds; the sixth has none left."""
    ticks = itertools.count(7.0, 2.0)
    time = types.SimpleNamespace(monotonic=lambda: next(ticks))
    monkeypatch.setattr(trainer_lib, "time", time)
    monkeypatch.setattr(
        logs.TrainingLog, "steps_per_call", lambda log, _, limit: min(limit, 5)
    )
    schedule = WarmupClockDecay(PEAK, 99, 1, 12.0)
    schedule.build()
    run = train(tmp_path, schedule, 99, log_steps=50, max_time="0s")
    assert run.step == 5 * 5 + 1
