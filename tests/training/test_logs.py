"""Log lines of training and evaluation, and the speed that they show."""

import numpy as np
import pytest
import tensorflow as tf

from bert.training import logs
from bert.training.settings import Training
from tests.helpers import tiny
from tests.helpers.training_loop import phase


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: now[0])
    return now


def make_log(iterations_per_loop=13, profiled=None):
    steps = tiny.make_steps()
    return logs.TrainingLog("", steps, iterations_per_loop, profiled)


def run(log, clock, *calls):
    for seconds, steps in calls:
        clock[0] += seconds
        log.count_call(steps)


def test_calls_that_compile_are_not_counted(clock):
    log = make_log(iterations_per_loop=100)
    run(log, clock, (17.0, 1))
    assert log.seconds_per_step == 0 and log.steps_per_call(0, 50) == 1
    run(log, clock, (0.125, 1))
    assert log.seconds_per_step == 0.125 and log.steps_per_call(0, 50) == 16
    run(log, clock, (9.0, 1), (0.375, 1), (8.0, 1), (1.0, 2))
    assert log.seconds_per_step == 1.5 / 4
    run(log, clock, (10.0, 40))  # as fast as the others
    assert log.seconds_per_step == 11.5 / 44


def test_pauses_are_not_counted_and_calls_are_limited(clock):
    log = make_log(profiled=(20, 21))
    run(log, clock, (1.0, 1))
    clock[0] += 500
    log.resume()
    run(log, clock, (0.01, 1))
    assert log.seconds_per_step == pytest.approx(0.01)
    assert log.steps_per_call(0, 50) == 13
    assert log.steps_per_call(0, 7) == 7
    assert log.steps_per_call(9, 50) == 10  # up to the profile


@pytest.mark.parametrize("last", [4, 5])
def test_a_profile_has_its_steps_alone(monkeypatch, clock, last):
    profiler, calls, step = tf.profiler.experimental, [], 0
    monkeypatch.setattr(profiler, "start", lambda folder: calls.append("start"))
    monkeypatch.setattr(profiler, "stop", lambda: calls.append("stop"))
    settings = Training(profile_steps=f"4:{last}")
    log = make_log(profiled=settings.steps_to_profile)
    run(log, clock, (1.0, 1), (0.01, 1))
    while step < 9:
        count = log.steps_per_call(step, 9 - step)
        calls.append((step + 1, count))
        step += count
    profile = [(number, 1) for number in range(4, last + 1)]
    after = (last + 1, 9 - last)
    assert calls == [(1, 3), "start", *profile, "stop", after]


def test_the_first_call_is_logged_and_then_one_every_ten_seconds(clock, capsys):
    log, lines = make_log(), []
    log.add(np.ones((1, 5), np.float32))
    for seconds in (3.0, 9.5, 0.5):
        run(log, clock, (seconds, 1))
        log.report(1, phase(None), 0.5, is_stop=False)
        lines.append(capsys.readouterr().err.count("step 1/7 | loss 1.0"))
    assert lines == [1, 0, 1]


def test_the_speed_and_the_time_left_are_those_of_the_steps(clock, capsys):
    log, sums = make_log(), np.ones((3, 5), np.float32)
    sums[:, 2] = [2.0, 3.0, 7.0]  # tokens of the batches
    log.add(sums)
    run(log, clock, (17.0, 1), (2.0, 1))
    log.report(1, phase(None, rows=7), 0.5, is_stop=False)
    shown = "| 3.5 examples/s | 2 tokens/s | 12 s left\n"
    assert capsys.readouterr().err.endswith(shown)


@pytest.mark.parametrize("count", [5, 7])
def test_sums_of_other_objectives_are_not_continued(count):
    log = make_log()
    state = log.state_dict()
    log.add(np.ones((3, 5), np.float32))
    kept = log.state_dict()
    kept["sums"] = kept["sums"][:1] * (count - 1)
    log.load_state_dict(state)
    log.load_state_dict(kept)
    assert log.state_dict() == (kept if count == 5 else state)


def test_an_objective_without_answers_has_no_accuracy(capsys):
    sums = np.array([8.0, 5.0, 7.0, 2.0, 2.0])
    values = logs.means(tiny.make_steps(), sums, 2)
    assert values == {"loss": 1.6, "error_loss": 1.6, "gradient_norm": 1.0}
    for weight, loss in ((0.5, 16.0), (0.0, 0.0)):
        sums[1] = weight
        assert logs.means(tiny.make_steps(), sums, 2)["loss"] == loss
    logs.log_evaluation(7, values, ("error",))
    rates = dict.fromkeys(("examples_per_second", "tokens_per_second"), 0)
    rates["learning_rate"] = 0.5
    logs.log_training(7, 11, values | rates, ("error",), 0)
    held_out, trained = capsys.readouterr().err.splitlines()
    assert held_out == "step 7 held out | loss 1.6000 = error 1.6000"
    assert trained.startswith("step 7/11 | loss 1.6000 = error 1.6000 | lr 0.5")
