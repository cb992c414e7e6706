"""Preemption of a run by SIGTERM, Ctrl-C or a time limit.

The run saves a checkpoint, logs it, and ends with a fixed exit code. A second
signal ends the process at once.
"""

import contextlib
import os
import signal
import time

from bert.common.progress import log

RUN_AGAIN = 75  # EX_TEMPFAIL of sysexits.h: the same command resumes
_EXIT_CODES = {signal.SIGTERM: RUN_AGAIN, signal.SIGINT: 130}


class Abandoned(Exception):
    """An evaluation was interrupted because the run has to stop."""


class Preemption:
    """Context manager that catches signals and watches the time limit.

    Args:
        max_time: float or None. Seconds after which the run has to stop.
            Default: None, no limit.
        alone: bool. Whether the run has a single process. With several, the
            others would wait forever for a process that left an evaluation.
            Default: True.
    """

    def __init__(self, max_time: float | None = None, alone: bool = True):
        self._alone = alone
        self._end = None if max_time is None else time.monotonic() + max_time
        self._signal: signal.Signals | None = None
        self._may_abandon = False

    def __enter__(self):
        self._before = {
            number: signal.signal(number, self._handle)
            for number in _EXIT_CODES
        }
        return self

    def __exit__(self, *error):
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def request(self) -> int:
        """Request to the training loop after the current step.

        0: continue. 1: save and end, because the time is up. Any other number:
        save and end, because of the signal with this number.
        """
        is_late = self._end is not None and time.monotonic() >= self._end
        return int(self._signal or is_late)

    def adopt(self, request: int) -> None:
        """Adopts the request of another process of the run."""
        if request > 1:
            self._signal = signal.Signals(request)
        elif request:
            self._end = time.monotonic()

    @contextlib.contextmanager
    def abandoning(self):
        """Context in which a signal raises `Abandoned`."""
        self._may_abandon = self._alone
        try:
            if self._may_abandon and self._signal is not None:
                raise Abandoned
            yield
        finally:
            self._may_abandon = False

    def end(self, step: int, last_step: int) -> None:
        """Ends the process on request, after the run has saved.

        Args:
            step: int. Step of the saved checkpoint; 0 without one.
            last_step: int. Last step of the run.

        Raises:
            SystemExit: with `RUN_AGAIN` after SIGTERM, 130 after Ctrl-C, and
                0 if the time is up before the last step.
        """
        if self._signal is not None:
            cause, code = self._signal.name, _EXIT_CODES[self._signal]
        elif self.request and step < last_step:
            cause, code = "the time of --max_time is up", 0
        else:
            return

        # A run that has not begun has no checkpoint.
        state = "which is saved" if step else "with nothing to save"
        log(
            f"stopped at step {step} of {last_step}, {state}: {cause}; "
            "the same command resumes the run; --do_eval runs at its end"
        )
        raise SystemExit(code)

    def _handle(self, number: int, frame) -> None:
        self._signal = signal.Signals(number)

        # The next signal has its usual effect.
        for each in _EXIT_CODES:
            signal.signal(each, signal.SIG_DFL)
        # `print` is not reentrant, and the signal may have interrupted one.
        os.write(
            2, b"stopping after this step; a second signal stops at once\n"
        )

        if self._may_abandon:
            raise Abandoned
