"""Curves of runs that go wrong, and of a healthy run."""

import math

import numpy as np

from checks import curves
from checks.curves import Objective

OBJECTIVES = [
    Objective("masked_lm", math.log(30522), 0.97 * 7.2, 1000),
    Objective("next_sentence", math.log(2), 0.985 * math.log(2), 2000),
]
PATH = "run/metrics.jsonl"


def healthy(last=3000, every=50):
    """Points like those of a healthy run, with a little noise."""
    rng = np.random.default_rng(7)
    points = []
    for step in range(every, last + 1, every):
        left = math.exp(-step / 700)
        point = {
            "step": step,
            "kind": "train",
            "masked_lm_loss": 6.4 + 3.5 * left + rng.normal(0, 0.05),
            "next_sentence_loss": 0.38 + 0.31 * left + rng.normal(0, 0.02),
            "gradient_norm": 3.0 + rng.normal(0, 0.3),
            "learning_rate": 1e-4 * (1 - step / last),
        }
        points.append(point)
        if step % 500 == 0:
            held_out = {k: v for k, v in point.items() if k.endswith("loss")}
            points.append({"step": step, "kind": "eval", **held_out})
    return points


def of_kind(points, kind):
    return [point for point in points if point["kind"] == kind]


def judge(points, **how):
    found = curves.check(points, OBJECTIVES, PATH, **how)
    messages = {"wrong": [], "suspicious": [], "fine": []}
    for finding in found:
        assert finding.message.startswith(f"{PATH}: ")
        messages[finding.level].append(finding.message[len(PATH) + 2 :])
    return messages


def test_a_healthy_run_is_fine():
    for last, every in ((3000, 50), (200, 1), (1_000_000, 1000)):
        found = judge(healthy(last, every))
        assert found["wrong"] == found["suspicious"] == []
        assert found["fine"][0].startswith(f"step {last}, masked_lm ")


def test_numbers_that_are_not_finite():
    points = healthy()
    points[20]["masked_lm_loss"] = math.nan
    points[30]["gradient_norm"] = math.inf
    found = judge(points)
    assert found["suspicious"] == found["fine"] == []
    assert found["wrong"] == [
        f"masked_lm_loss is nan at step {points[20]['step']}; resume from "
        "an earlier checkpoint with a lower --learning_rate"
    ]


def test_a_start_that_no_fresh_network_has():
    points = healthy()
    points[0]["masked_lm_loss"] = 13.0
    (line,) = judge(points)["suspicious"]
    assert line == (
        "masked_lm_loss is 13.000 up to step 50; expected about 10.3, the "
        "loss of a fresh network; use a lower --learning_rate, or the "
        "vocabulary of the records and of --init_checkpoint"
    )
    points[0]["masked_lm_loss"] = 2.0
    (line,) = judge(points)["suspicious"]
    assert line.endswith("; can the network see the labels in its inputs?")
    assert judge(points, started_fresh=False)["suspicious"] == []


def test_a_run_that_learns_only_token_frequencies():
    points = healthy()
    for point in points:
        point["masked_lm_loss"] = max(point["masked_lm_loss"], 7.15)
        point["next_sentence_loss"] = 0.693
    masks, pairs = judge(points)["suspicious"]
    assert masks.startswith(
        "masked_lm_loss is still 7.150 at step 3000; expected less than 6.984 "
        "from step 1000 on, as in healthy runs; use a lower --learning_rate"
    )
    assert pairs.startswith("next_sentence_loss is still 0.693 at step 3000")
    early = [point for point in points if point["step"] < 1000]
    assert judge(early)["suspicious"] == []


def test_held_out_loss_that_rises_while_the_other_falls():
    points = healthy()
    for point in of_kind(points, "eval"):
        point["masked_lm_loss"] = 6.8 + abs(point["step"] - 1500) / 2000
    (line,) = judge(points)["suspicious"]
    assert line == (
        "held-out masked_lm_loss rose from 6.967 around step 1500 to 7.300, "
        "while the training loss fell; use the checkpoint of step 1500, or "
        "train on more text"
    )
    for point in of_kind(points, "train"):  # both rise: it is something else
        point["masked_lm_loss"] = 6.0 + point["step"] / 10_000
    assert judge(points)["suspicious"] == []


def test_a_spike_of_the_gradient():
    for every in (1, 50):
        points = healthy(last=100 * every, every=every)
        spike = of_kind(points, "train")[70]
        spike["gradient_norm"] = 6.5
        (line,) = judge(points)["suspicious"]
        assert line == (
            f"gradient_norm is 6.5 at step {spike['step']}, more than 6 "
            "deviations above the steps before; check the records of these "
            "steps, or lower --learning_rate"
        )
        of_kind(points, "train")[80]["gradient_norm"] = 99.0
        assert "(and 1 more spikes)" in judge(points)["suspicious"][0]


def test_no_training_and_no_such_objective():
    assert judge([])["suspicious"] == ["no point of the training curve"]
    points = [{"step": 7, "kind": "train", "loss": 3.0}]
    assert judge(points)["suspicious"] == []


def test_schedules():
    points = healthy()

    def check(**settings):
        return [
            (x.level, x.message.split(";")[0])
            for x in curves.check_schedule(settings, points, "run.json")
        ]

    good = {"num_train_steps": 3000, "num_warmup_steps": 500}
    assert check(**good, learning_rate=1e-4) == []
    assert check() == []
    assert check(num_train_steps=7, num_warmup_steps=7) == [
        (
            "suspicious",
            "run.json: 7 warm-up steps of 7: the learning rate never "
            "reaches its peak",
        )
    ]
    ((level, message),) = check(**good, learning_rate=5e-5)
    assert level == "suspicious"
    assert message.startswith("run.json: the learning rate was 9.83e-05")


def test_objectives_may_change_when_a_run_resumes():
    points = healthy()
    for point in points[len(points) // 2 :]:
        del point["next_sentence_loss"]
    assert judge(points)["wrong"] == judge(points)["suspicious"] == []
    assert judge(points[::-1])["wrong"] == []
