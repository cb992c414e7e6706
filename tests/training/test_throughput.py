"""Throughput: the calls that are counted."""

import numpy as np
import pytest

from bert.training import logs


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: now[0])
    return now


def run(found, clock, *calls):
    for seconds, steps in calls:
        clock[0] += seconds
        found.count_call(steps)


def test_calls_that_compile_are_not_counted(clock):
    found = logs.Throughput(100)
    run(found, clock, (17.0, 1))
    assert found.seconds_per_step == 0 and found.steps_per_call(50) == 1
    run(found, clock, (0.125, 1))
    assert found.seconds_per_step == 0.125 and found.steps_per_call(50) == 16
    run(found, clock, (9.0, 1), (0.375, 1), (8.0, 1), (1.0, 2))
    assert found.seconds_per_step == 1.5 / 4


def test_pauses_are_not_counted_and_calls_are_limited(clock):
    found = logs.Throughput(13)
    run(found, clock, (1.0, 1))
    clock[0] += 500
    found.resume()
    run(found, clock, (0.01, 1))
    assert found.seconds_per_step == pytest.approx(0.01)
    assert found.steps_per_call(50) == 13
    assert found.steps_per_call(7) == 7


def test_the_first_call_is_logged_and_then_one_every_ten_seconds(clock):
    found = logs.Throughput(13)
    run(found, clock, (3.0, 1))
    assert found.is_log_due()
    found.mark_logged()
    run(found, clock, (9.5, 1))
    assert not found.is_log_due()
    run(found, clock, (0.5, 1))
    assert found.is_log_due()


@pytest.mark.parametrize("names", [["loss"], ["loss", "other_loss"]])
def test_sums_of_other_objectives_are_not_continued(names):
    kept = logs.RunningSums(["loss"])
    kept.add(np.array([[0.5, 2.0, 1.0]]))
    sums = logs.RunningSums(names)
    sums.load_state_dict(kept.state_dict())
    assert sums.steps == (1 if names == ["loss"] else 0)
