"""Rules between flags, as data.

    RULES = [
        excludes("eval_fraction", "num_folds", "eval_file"),
        needs("glue_dir", "do_predict"),
        needs("pool_windows", "long_texts=windows"),
        at_most("doc_stride", lambda s: s.max_seq_length - 2, "a window"),
        rule("The number of folds divides the rows.", check_folds, "folds=7"),
    ]

A class of settings has its rules in `RULES` and inherits the rules of its base
classes. `command_line.parse` reports all rules that a command line breaks, and
`--help` lists them. A term of a rule is `name`, for a flag that is true or not
empty, or `name=value`.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bert.common.errors import UserError, raise_all, raised_by


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule between flags.

    Attributes:
        text: str. The rule in a sentence.
        check: callable. Takes the settings; yields an error for each
            violation, or raises one.
        broken_by: tuple of str. Terms that break the rule together, for tests.
    """

    text: str
    check: Callable[[Any], Iterable[UserError] | None]
    broken_by: tuple[str, ...]


def rule(
    text: str,
    check: Callable[[Any], Iterable[UserError] | None],
    *broken_by: str,
) -> Rule:
    """A rule that none of the other functions expresses."""
    return Rule(text, check, broken_by)


def excludes(*terms: str, reason: str = "") -> Rule:
    """At most one of the terms is true.

    Args:
        *terms: str. The terms.
        reason: str. Added to the message. Default: no reason.
    """

    def check(settings: object) -> Iterator[UserError]:
        true = [term for term in terms if _is_true(settings, term)]
        for pair in itertools.combinations(true, 2):
            yield UserError(
                _listed(pair, "and"), expected=f"one of them{reason}"
            )

    return Rule(f"At most one of {_listed(terms, 'and')}.", check, terms[:2])


def needs(term: str, *others: str) -> Rule:
    """If the term is true, one of the others is true too."""

    def check(settings: object) -> Iterator[UserError]:
        if _is_true(settings, term) and not any(
            _is_true(settings, other) for other in others
        ):
            listed = _listed(others, "or")
            fix = "one of them" if len(others) > 1 else f"{listed} too"
            yield UserError(f"--{term} without {listed}", fix=f"pass {fix}")

    return Rule(f"--{term} needs {_listed(others, 'or')}.", check, (term,))


def at_least_one(found: str, *names: str) -> Rule:
    """At least one of the flags is given; else `found` is the message."""

    def check(settings: object) -> Iterator[UserError]:
        if not any(_is_true(settings, name) for name in names):
            yield UserError(found, fix=f"pass {_listed(names, 'or')}")

    return Rule(f"At least one of {_listed(names, 'and')}.", check, ())


def at_most(name: str, limit: Callable[[Any], int], description: str) -> Rule:
    """A number has a maximum that depends on other flags.

    Args:
        name: str. Name of the flag.
        limit: callable. Settings -> maximum.
        description: str. Describes the maximum.
    """

    def check(settings: object) -> Iterator[UserError]:
        value, most = getattr(settings, name), limit(settings)
        if value and value > most:
            yield UserError(
                f"--{name}={value}", expected=f"at most {description}, {most}"
            )

    return Rule(
        f"--{name} is at most {description}.", check, (f"{name}=1000000",)
    )


def rules_of(settings_class: type) -> list[Rule]:
    """Lists the rules of a settings class and of its base classes."""
    return [
        one
        for base in settings_class.__mro__
        for one in vars(base).get("RULES", ())
    ]


def check(settings: object) -> None:
    """Checks the rules between the flags, as `command_line.parse` does.

    Args:
        settings: An instance of a class with rules.

    Raises:
        UserError: Flags contradict each other. The first mistake is raised,
            with all others attached.
    """
    raise_all([*violations(settings)])


def violations(settings: object) -> Iterator[UserError]:
    """Yields an error for each violation of the rules of settings."""
    for one in rules_of(type(settings)):
        yield from raised_by(one.check, settings)


def _is_true(settings: object, term: str) -> bool:
    """Whether a term applies to settings."""
    name, equals, value = term.partition("=")
    found = getattr(settings, name)
    return str(found) == value if equals else bool(found)


def _listed(terms: tuple[str, ...], word: str) -> str:
    """Formats terms as flags: `--a, --b and --c`."""
    *first, last = [f"--{term}" for term in terms]
    return f"{', '.join(first)} {word} {last}" if first else last
