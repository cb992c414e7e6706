"""Validation during training, best checkpoint and early stopping."""

import math
from collections.abc import Callable

import keras

from common import storage
from common.progress import say
from training.logs import TrainingLog
from training.preemption import Abandoned, Preemption
from training.saver import Saver


class Validation:
    """Evaluates, logs the metrics and saves the best weights.

    An evaluation that a signal interrupts is repeated when the run resumes.

    Args:
        evaluate: returns metrics of the current weights.
        log_line: logs a line for a step and its metrics.
        saver: keeps the best checkpoint.
        named: name -> variable.
        metric: name of the metric to compare.
        is_loss: whether lower is better.
        patience: number of evaluations without an improvement after which
            the run is over; 0: never.

    Attributes:
        is_owed: whether an evaluation was interrupted.
    """

    def __init__(
        self,
        evaluate: Callable[[], dict[str, float]],
        log_line: Callable[[int, dict[str, float]], None],
        saver: Saver,
        named: dict[str, keras.Variable],
        metric: str,
        is_loss: bool = False,
        patience: int = 0,
    ):
        self._evaluate, self._log_line = evaluate, log_line
        self._saver, self._named, self._metric = saver, named, metric
        self._is_loss, self._patience = is_loss, patience
        self._best = math.inf if is_loss else -math.inf
        self._waited = 0
        self.is_owed = False

    def add(
        self,
        step: int,
        log: TrainingLog,
        settings: dict,
        preemption: Preemption,
    ) -> None:
        """Evaluates the current weights.

        Args:
            step: their step.
            log: writes the metrics.
            settings: JSON values that describe the run.
            preemption: may interrupt the evaluation.
        """
        self.is_owed = True
        try:
            with preemption.abandoning():
                metrics = self._evaluate()
        except Abandoned:
            return
        self._log_line(step, metrics)
        log.write(step, "eval", metrics)
        self.save_if_best(step, metrics, settings)
        self.is_owed = False

    def save_if_best(
        self, step: int, metrics: dict[str, float], settings: dict
    ) -> None:
        """Saves the current weights if no earlier ones are as good.

        Args:
            step: step of the evaluation.
            metrics: its results.
            settings: JSON values that describe the run.
        """
        value = metrics[self._metric]
        if not (value < self._best if self._is_loss else value > self._best):
            self._waited += 1
            return
        storage.make_folder(self._saver.folder)
        settings = {**metrics, **settings, self._metric: value}
        self._saver.save(step, self._named, settings)
        self._best, self._waited = value, 0
        say(f"best {self._metric} so far: {value:.4f}, {self._saver.folder}")

    @property
    def is_over(self) -> bool:
        """Whether the patience is exhausted."""
        return 0 < self._patience <= self._waited

    def state_dict(self) -> dict:
        """JSON values for `load_state_dict`."""
        best = {"value": self._best.hex(), "waited": self._waited}
        return {"is_owed": self.is_owed, "best": best}

    def load_state_dict(self, state: dict) -> None:
        """Restores the state of an interrupted run.

        If the best weights were removed, the search for them starts anew.
        """
        self.is_owed = state["is_owed"]
        if self._saver.steps():
            self._best = float.fromhex(state["best"]["value"])
            self._waited = state["best"]["waited"]
