"""Rules between flags: a command line that breaks it for each rule."""

import dataclasses
import importlib
import pathlib

import pytest

from bert.common import command_line, flags, rules
from bert.common.errors import UserError
from bert.common.flags import BaseSettings, flag
from bert.common.rules import (
    at_least_one,
    at_most,
    excludes,
    needs,
    rule,
    rules_of,
)

ROOT = pathlib.Path(__file__).parents[2]
VALUES = {"max_time": "90m", "num_folds": "3", "labels": "x,y"}


def check_rate(settings):
    if settings.rate == 0.25:
        raise UserError("--rate=0.25", expected="another rate")


@dataclasses.dataclass(frozen=True)
class Base(BaseSettings):
    RULES = [needs("stride", "kind=windows"), excludes("a", "b", "c")]
    stride: int | None = flag(None, "Stride.")
    kind: str = flag("any", "Kind.", choices=("any", "windows"))
    a: bool = flag(False, "A.")
    b: float = flag(0.0, "B.")
    c: str | None = flag(None, "C.")


@dataclasses.dataclass(frozen=True)
class Small(Base):
    RULES = [
        at_least_one("nothing to do", "work", "rate"),
        needs("c", "work", "a"),
        at_most("stride", lambda s: s.length - 2, "a window"),
        excludes("kind=windows", "work", reason=": as windows do not work"),
        rule("--rate is not 0.25.", check_rate, "rate=0.25"),
    ]
    work: bool = flag(False, "Work.")
    rate: float = flag(0.5, "Rate.")
    length: int = flag(13, "Length.")


@dataclasses.dataclass(frozen=True)
class Smallest(Small):
    """Has the rules of all its bases."""


def errors(settings_class, *words):
    try:
        command_line.parse(["script", *words], settings_class, "")
    except UserError as error:
        return [str(error), *map(str, error.others)]
    return []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", []),
        ("--rate=0", ["nothing to do; pass --work or --rate"]),
        ("--c=x", ["--c without --work or --a; pass one of them"]),
        ("--c=x --work", []),
        ("--a --b=0", []),
        (
            "--a --b=1 --c=x",
            [
                "--a and --b; expected one of them",
                "--a and --c; expected one of them",
                "--b and --c; expected one of them",
            ],
        ),
        ("--stride=11 --kind=windows", []),
        (
            "--stride=12",
            [
                "--stride=12; expected at most a window, 11",
                "--stride without --kind=windows; pass --kind=windows too",
            ],
        ),
        (
            "--length=2 --stride=1 --kind=windows",
            ["--stride=1; expected at most a window, 0"],
        ),
        (
            "--kind=windows --work",
            [
                "--kind=windows and --work; expected one of them: as windows "
                "do not work"
            ],
        ),
        ("--rate=0.25", ["--rate=0.25; expected another rate"]),
    ],
)
def test_all_violations_are_reported(words, expected):
    assert errors(Smallest, *words.split()) == expected


def test_help_lists_the_rules(capsys):
    with pytest.raises(SystemExit):
        command_line.parse(["script", "--help"], Smallest, "")
    assert capsys.readouterr().out.partition("\nRules:\n")[2] == (
        "  At least one of --work and --rate.\n"
        "  --c needs --work or --a.\n"
        "  --stride is at most a window.\n"
        "  At most one of --kind=windows and --work.\n"
        "  --rate is not 0.25.\n"
        "  --stride needs --kind=windows.\n"
        "  At most one of --a, --b and --c.\n"
    )


def all_rules():
    """The rules of all scripts, each with one class that has it."""
    seen = {}
    for path in sorted(ROOT.glob("*.py")):
        settings_class = importlib.import_module(path.stem).Settings
        for one in rules_of(settings_class):
            seen[id(one)] = path.stem, settings_class, one
    for name, settings_class, one in seen.values():
        yield pytest.param(settings_class, one, id=f"{name}: {one.text}")


def word_of(declared, term):
    """A flag as `--name=value`, from a term of a rule."""
    name, equals, value = term.partition("=")
    one = declared[name]
    if one.kind is bool:
        return f"--{name}"
    if not equals:
        value = VALUES.get(name) or (one.choices or ("x",))[0]
        if one.kind in (int, float) and name not in VALUES:
            value = one.at_most or max(one.at_least or 0, 1)
    return f"--{name}={value}"


@pytest.mark.parametrize(("settings_class", "one"), all_rules())
def test_a_command_line_breaks_each_rule(monkeypatch, settings_class, one):
    declared = {x.name: x for x in flags.flags_of(settings_class)}
    required = [
        word_of(declared, name)
        for name, x in declared.items()
        if x.required and f"{name}=" not in str(one.broken_by)
    ]
    words = required + [word_of(declared, term) for term in one.broken_by]

    def added(*words):
        monkeypatch.setattr(rules, "rules_of", lambda _: [])
        before = errors(settings_class, *words)
        monkeypatch.setattr(rules, "rules_of", lambda _: [one])
        return {*errors(settings_class, *words)} - {*before}

    found = added(*words)
    assert found
    if one.broken_by:
        assert not added(*required)
    monkeypatch.setattr(rules, "rules_of", rules_of)
    assert found <= {*errors(settings_class, *words)}
