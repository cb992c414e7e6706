"""Progress lines of work that takes longer than ten seconds."""

import sys
import time


def duration(seconds: float) -> str:
    """Formats seconds: `42 s`, `3 min 05 s`, `2 h 10 min`."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"


class Progress:
    """Logs amount done, rate and time left, at most every `every` seconds.

    Args:
        what: name of the work, such as `records`.
        total: amount of work.
        unit: unit of `total`, such as `MB`.
        every: seconds between two lines.
    """

    def __init__(self, what: str, total: float, unit: str, every: float = 10):
        self._what, self._total, self._unit = what, total, unit
        self._every = every
        self._start = self._last = time.monotonic()

    def update(self, done: float, note: str = "") -> None:
        """Logs that `done` of `total` is done, if a line is due."""
        now = time.monotonic()
        if now - self._last < self._every:
            return
        self._last = now
        spent = now - self._start
        rate = done / spent
        left = duration((self._total - done) / rate) if rate else "unknown"
        say(
            f"{self._what}: {done:.4g} of {self._total:.4g} {self._unit} "
            f"({rate:.3g} {self._unit}/s, {left} left){note}"
        )


def say(message: str) -> None:
    """Prints one line to standard error."""
    print(message, file=sys.stderr, flush=True)
