"""Findings of the checks of doctor.py: wrong, suspicious or fine."""

import dataclasses

from bert.common.errors import UserError

WRONG, SUSPICIOUS, FINE = "wrong", "suspicious", "fine"


@dataclasses.dataclass(frozen=True)
class Finding:
    """One line of a report.

    Attributes:
        level: str. `WRONG`, `SUSPICIOUS` or `FINE`.
        message: str. `path:line: found; expected ...; fix`.
    """

    level: str
    message: str


def wrong(found: str, **parts) -> Finding:
    """Returns a finding that would fail a run; `parts` as in UserError."""
    return Finding(WRONG, str(UserError(found, **parts)))


def suspicious(found: str, **parts) -> Finding:
    """Returns a finding that is unusual for healthy data and runs."""
    return Finding(SUSPICIOUS, str(UserError(found, **parts)))


def fine(found: str, **parts) -> Finding:
    """Returns a finding about a successful check."""
    return Finding(FINE, str(UserError(found, **parts)))
