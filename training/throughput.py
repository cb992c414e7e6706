"""How fast a run goes, and its means since the last report."""

import time

_SECONDS_A_CALL = 2.0
_SECONDS_BETWEEN_LINES = 10.0


class Window:
    """Sums since the last report.

    Args:
        names: of the sums of a step.

    Attributes:
        steps: that were added.
    """

    def __init__(self, names: tuple[str, ...]):
        self._names = names
        self.steps = 0
        self._sums = [0.0] * (len(names) + 1)

    def add(self, rows) -> None:
        """Adds rows of `Steps.train`."""
        for row in rows.tolist():
            self._sums = [a + b for a, b in zip(self._sums, row)]
        self.steps += len(rows)

    def means(self, objectives: tuple[str, ...]) -> dict[str, float]:
        """`loss`, each objective's own and accuracy, `gradient_norm`."""
        sums = dict(zip(self._names, self._sums))
        values = {"loss": 0.0}
        for objective in objectives:
            weight = sums[f"{objective}_weight"]
            for what in ("loss", "accuracy"):
                name = f"{objective}_{what}"
                if name in sums:
                    values[name] = sums[name] / weight if weight else 0.0
            values["loss"] += values[f"{objective}_loss"]
        values["gradient_norm"] = self._sums[-1] / max(1, self.steps)
        return values

    def mean(self, name: str) -> float | None:
        """Mean of a sum over the steps, or None if there is no such sum."""
        sums = dict(zip(self._names, self._sums))
        return sums[name] / self.steps if name in sums else None

    def state_dict(self) -> dict:
        """JSON values for `load_state_dict`."""
        return {"steps": self.steps, "sums": [x.hex() for x in self._sums]}

    def load_state_dict(self, state: dict) -> None:
        """Takes up the sums that a run had when it was interrupted."""
        self.steps = state["steps"]
        self._sums = [float.fromhex(x) for x in state["sums"]]


class Throughput:
    """How fast it goes; pauses for checkpoints and evaluation are left out.

    The first call traces and compiles, so it takes one step and its time is
    not counted.

    Args:
        batch_size: rows of the whole batch.
        iterations_per_loop: at most so many steps in one call.
    """

    def __init__(self, batch_size: int, iterations_per_loop: int):
        self._batch_size = batch_size
        self._iterations_per_loop = iterations_per_loop
        self._seconds = 0.0
        self._steps = 0
        self._calls = 0
        self._start = self._logged = time.monotonic()

    def steps_a_call(self, room: int) -> int:
        """Steps that fit into a call, at most `room`."""
        if not self._steps:
            return 1
        fit = int(_SECONDS_A_CALL * self._steps / self._seconds)
        return max(1, min(room, fit, self._iterations_per_loop))

    def called(self, steps: int) -> None:
        """Notes that a call of so many steps has ended."""
        now = time.monotonic()
        if self._calls:
            self._seconds += now - self._start
            self._steps += steps
        self._calls += 1
        self._start = now

    def resume(self) -> None:
        """Notes that a pause has ended."""
        self._start = time.monotonic()

    def is_time_for_a_line(self) -> bool:
        """Whether the user has waited long enough."""
        return self._start - self._logged >= _SECONDS_BETWEEN_LINES

    def logged(self) -> None:
        """Notes that a line was printed."""
        self._logged = time.monotonic()

    @property
    def seconds_a_step(self) -> float:
        """0 while unknown."""
        return self._seconds / self._steps if self._steps else 0.0

    @property
    def examples_per_second(self) -> float:
        """0 while unknown."""
        rows = self._batch_size * self._steps
        return rows / self._seconds if self._steps else 0.0
