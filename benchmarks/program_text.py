"""Findings in the text of a program that XLA has optimized."""

import math
import re

_LINE = re.compile(r"\s+(?:ROOT )?%?([\w.-]+) = (.*?) ([\w-]+)\((.*)")
_SHAPE = re.compile(r"(\w+)\[([\d,]*)\]")
# They give another name to memory, or to a part of it.
_NAMES = {"bitcast", "get-tuple-element", "tuple", "opt-barrier"}
# A program asks the host by these, or keeps values in its memory, space 5.
_HOST = (" infeed(", " outfeed(", " send(", " recv(", "S(5)")


def check(text: str, weights: int, scores: int) -> dict[str, int]:
    """Counts what a training step should not have.

    Args:
        text: the optimized program, scheduled.
        weights: size from which a float32 array counts as weights.
        scores: B A S S of a device.

    Returns:
        numbers of float64 arrays, of transfers to the host, of arrays laid
        out with the first of three axes last, as a sum over a batch makes
        XLA do, of copies of weights, and of float32 arrays as large as
        [B, A, S, S] that are held at the same time.
    """
    return {
        "float64": text.count("f64["),
        "host_transfers": sum(map(text.count, _HOST)),
        "first_axis_last": text.count("{0,2,1}"),
        "weight_copies": sum(
            operation in ("copy", "copy-start") and _largest(kind) >= weights
            for _, kind, operation, _ in _operations(text)
        ),
        "scores_held": _held(_entry(text), scores),
    }


def all_reduces(text: str) -> int:
    """Number of sums over the devices."""
    return len(re.findall(r" all-reduce(?:-start)?\(", text))


def _operations(text: str) -> list[tuple[str, str, str, str]]:
    """Name, type, operation and the rest of each line."""
    return [x.groups() for x in map(_LINE.match, text.splitlines()) if x]


def _entry(text: str) -> str:
    """The computation that calls the others."""
    return text[text.index("\nENTRY ") :]


def _sizes(kind: str) -> list[int]:
    """Sizes of the float32 arrays of a type."""
    return [
        math.prod(int(x) for x in sizes.split(",") if x)
        for name, sizes in _SHAPE.findall(kind)
        if name == "f32"
    ]


def _largest(kind: str) -> int:
    return max(_sizes(kind), default=0)


def _held(text: str, size: int) -> int:
    """Largest number of float32 arrays of a size that are held at once."""
    memory, last = {}, {}  # name -> names of its memory; name -> last use
    births = {}
    for at, (name, kind, operation, rest) in enumerate(_operations(text)):
        used = {
            owner
            for operand in re.findall(r"%([\w.-]+)", rest)
            for owner in memory.get(operand, ())
        }
        for owner in used:
            last[owner] = at
        if operation in _NAMES:
            memory[name] = used
        elif count := _sizes(kind).count(size):
            memory[name] = {name}
            births[name] = at, count
    events = [(at, count) for at, count in births.values()]
    events += [
        (last.get(name, at) + 0.5, -count)
        for name, (at, count) in births.items()
    ]
    held = most = 0
    for _, change in sorted(events):
        held += change
        most = max(most, held)
    return most
