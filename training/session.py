"""A run from its checkpoint to its last step, however often it is stopped."""

from collections.abc import Callable, Iterable

import tensorflow as tf

from common.progress import say
from training import workers
from training.logs import TrainingLog
from training.loop import Schedule, Trainer
from training.preemption import Interruption
from training.saver import Restored, Saver
from training.state import TrainingState
from training.validation import HeldOut

# Makes the batches from the present step on, up to the schedule's last step.
Part = tuple[Callable[[], tf.data.Dataset], Schedule]


class Session:
    """Trains, saves, evaluates and stops.

    Args:
        trainer: takes the steps.
        state: its variables, and where they are kept.
        best: keeps the best weights of the run.
        folder: the run's output_dir.
        settings: JSON values that describe the run.
    """

    def __init__(
        self,
        trainer: Trainer,
        state: TrainingState,
        best: Saver,
        folder: str,
        settings: dict,
    ):
        self._trainer, self._state, self._best = trainer, state, best
        self._folder, self._settings = folder, settings
        self._held_out = None
        self._held_out_state = None

    def resume(self, will_train: bool) -> Restored | None:
        """Takes up the run in the folder, if there is one.

        Args:
            will_train: tidy up there, and see that checkpoints have room.
        """
        if will_train:
            self._state.sweep()
            self._state.check_space()
        strategy = self._trainer.steps.strategy
        workers.wait(strategy)  # until the chief has tidied up
        restored = self._state.restore()
        workers.check_step(strategy, self._state.step, self._folder)
        if restored and restored.state:
            self._trainer.take_state(restored.state["trainer"])
            self._held_out_state = restored.state["held_out"]
        return restored

    def train(
        self,
        parts: Iterable[Part],
        held_out: HeldOut | None = None,
        train_for: float | None = None,
    ) -> None:
        """Trains to the last step, or until it is to stop.

        What the folder holds of later steps than the present one is removed:
        checkpoints, best weights and curves of a branch that the run has
        left.

        Args:
            parts: what is trained on, one after the other.
            held_out: evaluates while training.
            train_for: stop after so many seconds.

        Raises:
            SystemExit: the run was interrupted, and saved.
        """
        parts = list(parts)
        strategy = self._trainer.steps.strategy
        self._state.forget_later()
        self._best.forget_after(self._state.step)
        workers.wait(strategy)  # until the chief has removed them
        self._held_out = held_out
        if held_out and self._held_out_state:
            held_out.take_state(self._held_out_state)
        log = TrainingLog(self._folder, self._state.step)
        with Interruption(train_for, not workers.is_joined()) as interruption:

            def evaluate():
                if held_out:
                    held_out.add(
                        self._state.step, log, self._settings, interruption
                    )

            def should_stop():
                wish = workers.most(strategy, interruption.wish)
                interruption.adopt(wish)
                is_over = held_out is not None and held_out.is_over
                return is_over or wish > 0

            if held_out and held_out.is_owed:
                evaluate()
                self._save()
            for make_batches, schedule in parts:
                if self._state.step >= schedule.num_train_steps:
                    continue
                if should_stop():
                    break
                self._trainer.train(
                    make_batches(),
                    schedule,
                    log,
                    self._save,
                    evaluate,
                    should_stop,
                )
            last_step = parts[-1][1].num_train_steps
            should_stop()  # all have come this far, and go on alike
            interruption.end(self._state.step, last_step)
        if held_out and held_out.is_over:
            say(
                f"finished: stopped early at step {self._state.step} of "
                f"{last_step}, no better evaluation came"
            )

    def _save(self) -> None:
        held_out = self._held_out.state() if self._held_out else None
        self._state.save(
            self._settings,
            {"trainer": self._trainer.state(), "held_out": held_out},
        )
