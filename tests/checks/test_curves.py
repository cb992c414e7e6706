"""Curves of runs that go wrong, and of a healthy run."""

import math

import numpy as np
import pytest

from bert.checks import records, run
from tests.helpers import small

PATH = "run/metrics.jsonl"
MASKS, PAIRS = "masked_lm_loss", "next_sentence_loss"
LEARNED = {MASKS: (0.97 * 7.2, 1000), PAIRS: (0.985 * math.log(2), 2000)}


def healthy():
    """Points like those of a healthy run, with a little noise."""
    rng = np.random.default_rng(7)
    points = []
    for step in range(50, 3001, 50):
        left = math.exp(-step / 700)
        point = {
            "step": step,
            "kind": "train",
            MASKS: 6.4 + 3.5 * left + rng.normal(0, 0.05),
            PAIRS: 0.38 + 0.31 * left + rng.normal(0, 0.02),
            "gradient_norm": 3.0 + rng.normal(0, 0.3),
        }
        points.append(point)
    return points


def judge(points):
    messages = {"wrong": [], "suspicious": [], "fine": []}
    for finding in run.check_curves(points, LEARNED, PATH):
        assert finding.message.startswith(f"{PATH}: ")
        messages[finding.level].append(finding.message[len(PATH) + 2 :])
    return messages


def test_a_healthy_run_is_fine():
    found = judge(healthy())
    assert found["wrong"] == found["suspicious"] == []
    assert found["fine"][0].startswith("step 3000, masked_lm_loss 6.4")


def test_numbers_that_are_not_finite():
    points = healthy()
    points[20][MASKS] = math.nan
    points[30]["gradient_norm"] = math.inf
    found = judge(points)
    assert found["suspicious"] == found["fine"] == []
    assert found["wrong"] == [
        f"masked_lm_loss is nan at step {points[20]['step']}; resume from "
        "an earlier checkpoint with a lower --learning_rate"
    ]


def test_a_run_that_learns_only_token_frequencies():
    points = healthy()
    for point in points:
        point[MASKS] = max(point[MASKS], 7.15)
        point[PAIRS] = 0.693
    masks, pairs = judge(points)["suspicious"]
    assert masks.startswith(
        "masked_lm_loss is still 7.150 at step 3000; expected less than 6.984 "
        "from step 1000 on, as in healthy runs; use a lower --learning_rate"
    )
    assert pairs.startswith("next_sentence_loss is still 0.693 at step 3000")
    for last, count in ((950, 0), (1000, 1)):
        early = [point for point in points if point["step"] <= last]
        assert len(judge(early)["suspicious"]) == count


def test_no_training_and_no_such_objective():
    assert judge([])["suspicious"] == ["no point of the training curve"]
    points = [{"step": 7, "kind": "train", "loss": 3.0}]
    assert judge(points)["suspicious"] == []


def test_objectives_may_change_when_a_run_resumes():
    points = healthy()
    for point in points[len(points) // 2 :]:
        del point[PAIRS]
    found = judge(points)
    assert found["wrong"] == found["suspicious"] == []


def test_what_a_run_has_learned_that_knows_only_frequencies():
    targets = np.array([0, 20_000, 10_000, 10_000])
    config = small.config()
    learned = run.learned_losses(config, records.Scan(targets=targets), 700)
    assert learned[PAIRS] == (0.985 * math.log(2), 2000)
    assert learned[MASKS] == pytest.approx((0.97 * 1.5 * math.log(2), 1400))
    for few in (None, targets // 4):
        limit, step = run.learned_losses(config, records.Scan(targets=few), 0)[
            MASKS
        ]
        assert (limit, step) == (pytest.approx(0.679 * math.log(small.V)), 1000)
    assert MASKS not in run.learned_losses(None, records.Scan(), 0)
