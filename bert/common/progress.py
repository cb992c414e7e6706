"""Progress reports: a bar on a terminal, else a line every ten seconds."""

import os
import shutil
import sys
import time

from bert.common.errors import printable

_WIDTH = 100  # maximum columns of the bar and its text
_BAR = 24
_CLEAR = "\r\x1b[K"
_SECONDS_BETWEEN_BARS = 0.2


def duration(seconds: float) -> str:
    """Formats seconds: `42 s`, `3 min 05 s`, `2 h 10 min`."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"


def quantity(number: float) -> str:
    """Formats a number with three digits or more: `0.125`, `42.1`, `60,812`."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def counted(count: int, unit: str) -> str:
    """Formats a number of things: `1 file`, `1,200 files`."""
    return f"{count:,} {unit}{'s' * (count != 1)}"


class Progress:
    """Shows amount done, rate and time left.

    On a terminal a bar is redrawn in place; otherwise a line is logged at
    most every ten seconds.

    Args:
        description: str. Name of the work, such as `records`.
        total: float. Amount of work.
        unit: str. Unit of `total`, such as `MB`.
    """

    def __init__(self, description: str, total: float, unit: str):
        self._description, self._total, self._unit = description, total, unit
        self._every = _SECONDS_BETWEEN_BARS if on_terminal() else 10.0
        self._start = self._last = time.monotonic()

    def update(self, done: float, note: str = "") -> None:
        """Shows that `done` of `total` is done, if an update is due."""
        now = time.monotonic()

        # The last update is never skipped: it removes the bar.
        is_over = on_terminal() and done >= self._total
        if now - self._last < self._every and not is_over:
            return
        self._last = now
        spent = now - self._start
        rate = done / spent if spent else 0.0
        of_total = f"{quantity(done)} of {quantity(self._total)} {self._unit}"
        rate_and_left = f"none finished in {duration(spent)}"
        if rate:
            left = duration((self._total - done) / rate)
            rate_and_left = f"{quantity(rate)} {self._unit}/s, {left} left"
        if on_terminal():
            fraction = done / self._total if self._total else 1.0
            draw(self._description, fraction, f"{of_total}, {rate_and_left}")
        else:
            log(f"{self._description}: {of_total} ({rate_and_left}){note}")


def on_terminal() -> bool:
    """Returns whether standard error is a terminal, which can redraw lines."""
    return sys.stderr.isatty()


def draw(description: str, fraction: float, text: str) -> None:
    """Draws a bar over the last one, on a terminal.

    Args:
        description: str. Name of the work.
        fraction: float. Fraction of the work that is done, 0 to 1. At 1 the bar
            is removed.
        text: str. Text to show after the bar.
    """
    if not on_terminal():
        return
    line = ""
    if fraction < 1:
        bar = "#" * int(_BAR * fraction)
        line = f"{description} {fraction:4.0%} [{bar:-<{_BAR}}] {text}"

    # A wrapped line could not be redrawn in place.
    columns = min(_WIDTH, shutil.get_terminal_size().columns - 1)
    sys.stderr.write(f"{_CLEAR}{line[:columns]}")
    sys.stderr.flush()


def log(message: str) -> None:
    """Prints one line to standard error, replacing a bar if there is one."""
    message = "\n".join(map(printable, message.split("\n")))
    line = f"{_CLEAR * on_terminal()}{message}\n"  # one write: threads may log
    try:
        print(line, end="", file=sys.stderr, flush=True)
    except BrokenPipeError:
        raise
    except OSError:  # a full disk: the work goes on without its log
        drop_writes(2)


def drop_writes(stream: int) -> None:
    """Drops all further writes to standard output (1) or error (2)."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
