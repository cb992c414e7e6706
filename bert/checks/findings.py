"""Findings of a check: wrong, suspicious or fine."""

import dataclasses

from bert.common.errors import UserError

WRONG, SUSPICIOUS, FINE = "wrong", "suspicious", "fine"


@dataclasses.dataclass(frozen=True)
class Finding:
    """One line of a report.

    Attributes:
        level: `WRONG`, `SUSPICIOUS` or `FINE`.
        message: `path:line: found; expected ...; fix`.
    """

    level: str
    message: str


def wrong(found: str, **parts) -> Finding:
    """Returns a finding of what would fail a run; `parts` as in UserError."""
    return Finding(WRONG, str(UserError(found, **parts)))


def suspicious(found: str, **parts) -> Finding:
    """Returns a finding of what is unusual for healthy data and runs."""
    return Finding(SUSPICIOUS, str(UserError(found, **parts)))


def fine(found: str, **parts) -> Finding:
    """Returns a finding of what was checked and is correct."""
    return Finding(FINE, str(UserError(found, **parts)))
