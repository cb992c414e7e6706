"""Checks of the curves of a run against those of healthy runs.

Healthy runs are those in docs/results.md.
"""

import dataclasses
import math

import numpy as np

from common.findings import Finding, fine, suspicious, wrong
from training.guard import DEVIATIONS, WINDOW

_MIN_POINTS = 16  # for a standard deviation
_RECENT = 5  # points whose mean is the present loss


@dataclasses.dataclass(frozen=True)
class Objective:
    """Loss of an objective in healthy runs.

    Attributes:
        name: name in the curves, `<name>_loss`.
        fresh: loss of an untrained network, in nats.
        learned: loss that a run that learns falls below ...
        by_step: ... by this step.
    """

    name: str
    fresh: float
    learned: float
    by_step: int


def check(
    points: list[dict],
    objectives: list[Objective],
    path: str,
    started_fresh: bool = True,
) -> list[Finding]:
    """Checks the curves of a run.

    Args:
        points: from `common.formats.curves.read_curves`.
        objectives: objectives of the run.
        path: file of the curves.
        started_fresh: whether the run started from initial weights.
    """
    train = [point for point in points if point.get("kind") == "train"]
    held_out = [point for point in points if point.get("kind") == "eval"]
    if not train:
        return [suspicious("no point of the training curve", path=path)]
    found = _check_finite(points, path)
    if found:
        return found
    for objective in objectives:
        loss = f"{objective.name}_loss"
        # A resumed run may have other objectives than before.
        known = [point for point in train if loss in point]
        if not known:
            continue
        found += _check_start(known[0], objective, path, started_fresh)
        found += _check_learning(known, objective, path)
        found += _check_overfit(known, held_out, objective.name, path)
    found += _check_spikes(train, path)
    last = [f"step {train[-1]['step']}"] + [
        f"{x.name} {train[-1][f'{x.name}_loss']:.3f} (fresh {x.fresh:.3f})"
        for x in objectives
        if f"{x.name}_loss" in train[-1]
    ]
    found.append(fine(", ".join(last), path=path))
    return found


def check_schedule(
    settings: dict, points: list[dict], path: str
) -> list[Finding]:
    """Checks that the learning rate reaches its peak and not more.

    Args:
        settings: flags of the run.
        points: from `common.formats.curves.read_curves`.
        path: file of the settings.
    """
    last = settings.get("num_train_steps", 0)
    warmup = settings.get("num_warmup_steps", 0)
    if last and warmup >= last:
        return [
            suspicious(
                f"{warmup} warm-up steps of {last}: the learning rate "
                "never reaches its peak",
                path=path,
                fix="lower --num_warmup_steps",
            )
        ]
    peak = settings.get("learning_rate")
    rates = [point.get("learning_rate", 0) for point in points]
    if peak is not None and rates and max(rates) > 1.01 * peak:
        return [
            suspicious(
                f"the learning rate was {max(rates):.3g}",
                path=path,
                expected=f"at most {peak:.3g}",
                fix="do the curves and the checkpoint belong to one run?",
            )
        ]
    return []


def _check_finite(points: list[dict], path: str) -> list[Finding]:
    for point in points:
        for name, value in point.items():
            if isinstance(value, float) and not math.isfinite(value):
                return [
                    wrong(
                        f"{name} is {value} at step {point['step']}",
                        path=path,
                        fix="resume from an earlier checkpoint with a lower "
                        "--learning_rate",
                    )
                ]
    return []


def _check_start(
    point: dict, objective: Objective, path: str, started_fresh: bool
) -> list[Finding]:
    """Compares the first point with the loss of an untrained network."""
    loss, step = point[f"{objective.name}_loss"], point["step"]
    expected = f"about {objective.fresh:.3g}, the loss of a fresh network"
    if loss > 1.25 * objective.fresh:
        fix = "use a lower --learning_rate, or the vocabulary of the records "
        fix += "and of --init_checkpoint"
    elif started_fresh and step <= 100 and loss < 0.5 * objective.fresh:
        fix = "can the network see the labels in its inputs?"
    else:
        return []
    return [
        suspicious(
            f"{objective.name}_loss is {loss:.3f} up to step {step}",
            path=path,
            expected=expected,
            fix=fix,
        )
    ]


def _check_learning(
    train: list[dict], objective: Objective, path: str
) -> list[Finding]:
    """Checks that a run has learned more than the frequencies of labels."""
    step = train[-1]["step"]
    name = f"{objective.name}_loss"
    loss = float(np.mean([point[name] for point in train[-_RECENT:]]))
    if step < objective.by_step or loss < objective.learned:
        return []
    return [
        suspicious(
            f"{name} is still {loss:.3f} at step {step}",
            path=path,
            expected=f"less than {objective.learned:.3f} from step "
            f"{objective.by_step} on, as in healthy runs",
            fix="use a lower --learning_rate or a longer warm-up: Adam without "
            "bias correction takes larger steps at first",
        )
    ]


def _check_overfit(
    train: list[dict], held_out: list[dict], name: str, path: str
) -> list[Finding]:
    """Checks for a held-out loss that rises while the training loss falls."""
    loss = f"{name}_loss"
    held_out = [point for point in held_out if loss in point]
    if len(held_out) < 3:
        return []
    best = min(held_out, key=lambda point: point[loss])["step"]
    # Means of several: one of many evaluations may be low by chance.
    few = min(3, len(held_out) // 2)
    losses = np.array([point[loss] for point in held_out])
    means = np.convolve(losses, np.full(few, 1 / few), "valid")
    lowest, now = means.min(), means[-1]
    before = [x[loss] for x in train if x["step"] <= best][-_RECENT:]
    after = [x[loss] for x in train if x["step"] > best][-_RECENT:]
    if now < 1.03 * lowest or not before or not after:
        return []
    if np.mean(after) >= np.mean(before):
        return []
    return [
        suspicious(
            f"held-out {loss} rose from {lowest:.3f} around step {best} to "
            f"{now:.3f}, while the training loss fell",
            path=path,
            fix=f"use the checkpoint of step {best}, or train on more text",
        )
    ]


def _check_spikes(train: list[dict], path: str) -> list[Finding]:
    """Checks for gradient norms far above those of the 128 steps before."""
    steps = np.array([point["step"] for point in train])
    norms = np.array([point.get("gradient_norm", 0.0) for point in train])
    spikes = []
    for i in range(_MIN_POINTS, len(train)):
        # Points may be more than 128 steps apart: use the last few.
        first = min(
            int(np.searchsorted(steps, steps[i] - WINDOW)), i - _MIN_POINTS
        )
        before = norms[first:i]
        deviation = max(before.std(), 0.05 * before.mean())
        if norms[i] > before.mean() + DEVIATIONS * deviation:
            spikes.append(i)
    if not spikes:
        return []
    i = spikes[0]
    return [
        suspicious(
            f"gradient_norm is {norms[i]:.3g} at step {steps[i]}, more than "
            f"{DEVIATIONS:.0f} deviations above the steps before"
            + (f" (and {len(spikes) - 1} more spikes)" if spikes[1:] else ""),
            path=path,
            fix="check the records of these steps, or lower --learning_rate",
        )
    ]
