"""What asks a run to stop: SIGTERM, Ctrl-C, or its time is up.

The run saves, says so, and ends with a fixed exit code. A second signal ends
the process at once.
"""

import contextlib
import os
import signal
import time

from common.progress import say

RUN_AGAIN = 75  # EX_TEMPFAIL of sysexits.h: the same command goes on
_EXIT_CODES = {signal.SIGTERM: RUN_AGAIN, signal.SIGINT: 130}


class Abandoned(Exception):
    """An evaluation was left unfinished, because the run is to stop."""


class Preemption:
    """Catches signals while it is entered, and watches the clock.

    Args:
        train_for: the run is to stop after so many seconds; None: never.
        alone: no other process takes part in the run. One that does would
            wait for ever for one that leaves an evaluation.
    """

    def __init__(self, train_for: float | None = None, alone: bool = True):
        self._alone = alone
        self._end = None if train_for is None else time.monotonic() + train_for
        self._signal = None
        self._may_abandon = False

    def __enter__(self):
        self._before = {
            number: signal.signal(number, self._take) for number in _EXIT_CODES
        }
        return self

    def __exit__(self, *error):
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def is_asked(self) -> bool:
        """Whether the run is to save and end after the present step."""
        is_late = self._end is not None and time.monotonic() >= self._end
        return is_late or self._signal is not None

    @property
    def wish(self) -> int:
        """0: go on; 1: the time is up; else the number of the signal."""
        return int(self._signal or self.is_asked())

    def adopt(self, wish: int) -> None:
        """Takes over the wish of another process of the run."""
        if wish > 1:
            self._signal = signal.Signals(wish)
        elif wish:
            self._end = time.monotonic()

    @contextlib.contextmanager
    def abandoning(self):
        """Work that changes nothing; a signal leaves it by `Abandoned`."""
        self._may_abandon = self._alone
        try:
            if self._may_abandon and self._signal is not None:
                raise Abandoned
            yield
        finally:
            self._may_abandon = False

    def end(self, step: int, last_step: int) -> None:
        """Ends the process if it was asked for, after the run has saved.

        Args:
            step: that was saved.
            last_step: of the run.

        Raises:
            SystemExit: with `RUN_AGAIN` after SIGTERM, 130 after Ctrl-C, and
                0 if the time is up before the last step.
        """
        if self._signal is not None:
            cause, code = self._signal.name, _EXIT_CODES[self._signal]
        elif self.is_asked() and step < last_step:
            cause, code = "the time of --train_for is up", 0
        else:
            return
        say(
            f"stopped at step {step} of {last_step}, which is saved: {cause}; "
            "the same command goes on"
        )
        raise SystemExit(code)

    def _take(self, number: int, frame) -> None:
        self._signal = signal.Signals(number)
        for each in _EXIT_CODES:
            signal.signal(each, signal.SIG_DFL)
        # It may interrupt a print, which must not be entered again.
        os.write(2, b"stopping after this step; once more: at once\n")
        if self._may_abandon:
            raise Abandoned
