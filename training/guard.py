"""Watches the steps of a run: what is not finite, and spikes of the loss.

The steps themselves leave weights and moments as they are where the loss or
the gradient is not finite; here it is logged, and the run is ended if it does
not pass.
"""

import collections
import statistics
from collections.abc import Callable

import numpy as np

from common.errors import UserError
from common.progress import say
from training.steps import Steps
from training.throughput import Window

MOST_BAD_STEPS = 3  # in a row


class Guard:
    """Looks at every step, after it was taken.

    Args:
        steps: whose steps they are; counts the bad ones.
    """

    def __init__(self, steps: Steps):
        self._steps = steps
        self._spikes = Spikes()

    def check(
        self, step: int, rows: np.ndarray, records_of: Callable[[int], str]
    ) -> np.ndarray:
        """Warns of bad steps and of spikes.

        Args:
            step: before the first of them.
            rows: of `Steps.train`.
            records_of: step -> where the rows of its batch come from.

        Returns:
            the rows of those that were learned from.

        Raises:
            UserError: three steps in a row were not finite.
        """
        learned = np.isfinite(rows).all(1)
        for number, (row, good) in enumerate(zip(rows, learned), step + 1):
            losses = self._losses(row)
            if good:
                self._steps.bad_steps = 0
                limit = self._spikes.add(losses["loss"])
                if limit is not None:
                    say(
                        f"warning: step {number}: loss {losses['loss']:.4f} "
                        f"spikes above {limit:.4f}, the mean of the last steps "
                        "and six standard deviations; its rows: "
                        f"{records_of(number)}"
                    )
            elif self._is_bad(row):
                self._bad_step(number, row, losses, records_of(number))
        return rows[learned]

    def _losses(self, row: np.ndarray) -> dict[str, float]:
        one = Window(self._steps.sum_names)
        one.add(row[None])
        values = one.means(self._steps.task.objectives)
        return {name: x for name, x in values.items() if name.endswith("loss")}

    def _is_bad(self, row: np.ndarray) -> bool:
        """Whether it is more than a loss that was scaled up too far."""
        *sums, _, loss_scale = row
        return loss_scale <= 1.0 or not np.isfinite(sums).all()

    def _bad_step(
        self, step: int, row: np.ndarray, losses: dict, records: str
    ) -> None:
        shown = ", ".join(f"{name} {x:.4g}" for name, x in losses.items())
        say(
            f"warning: step {step}: {shown}, gradient norm {row[-2]:.4g}: "
            "nothing was learned from this batch; its rows: "
            f"{records}"
        )
        self._steps.bad_steps += 1
        if self._steps.bad_steps == MOST_BAD_STEPS:
            raise UserError(
                f"steps {step - MOST_BAD_STEPS + 1} to {step} gave no finite "
                "loss and gradient",
                expected="finite numbers",
                fix="look at the rows named above, lower --learning_rate, or "
                "leave the steps out with --skip_steps",
            )


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
