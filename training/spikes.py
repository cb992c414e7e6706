"""Losses that leap out of those before."""

import collections
import statistics

WINDOW = 128
DEVIATIONS = 6.0


class Spikes:
    """Compares each step's loss with those of the steps before it.

    It says nothing until it has seen `WINDOW` of them.
    """

    def __init__(self):
        self._losses = collections.deque(maxlen=WINDOW)

    def add(self, loss: float) -> float | None:
        """Takes the next step's loss.

        Args:
            loss: finite.

        Returns:
            if the loss is a spike, the limit that it is above: six standard
            deviations more than the mean of the last 128 steps.
        """
        limit = None
        if len(self._losses) == WINDOW:
            mean = statistics.fmean(self._losses)
            deviation = statistics.pstdev(self._losses, mean)
            limit = mean + DEVIATIONS * deviation
        self._losses.append(loss)
        return limit if limit is not None and loss > limit else None
