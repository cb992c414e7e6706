"""What an examination found: wrong, suspicious, or fine."""

import dataclasses

from common.errors import UserError

WRONG, SUSPICIOUS, FINE = "wrong", "suspicious", "fine"


@dataclasses.dataclass(frozen=True)
class Finding:
    """One line of a report.

    Attributes:
        level: one of the three above.
        message: `path:line: found; expected ...; what to do`.
    """

    level: str
    message: str


def wrong(found: str, **parts) -> Finding:
    """What a run would stumble over; `parts` are those of a UserError."""
    return Finding(WRONG, str(UserError(found, **parts)))


def suspicious(found: str, **parts) -> Finding:
    """What healthy data and runs do not show."""
    return Finding(SUSPICIOUS, str(UserError(found, **parts)))


def fine(found: str, **parts) -> Finding:
    """What was examined and holds."""
    return Finding(FINE, str(UserError(found, **parts)))
